"""SIGKILL: the process is gone, without a chance to say so; the undo starts it again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._measure import Leadership, able, in_parallel, names_in_cluster, not_running, wait_whole
from harness.contracts import Arena, Bite, Healing, Killable, Node


@dataclass(frozen=True)
class Kill:
    """One, some or all, at once. Bites when every process is gone and what it led is led elsewhere, if it can be."""

    needs: ClassVar[type] = Killable
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = "every process is gone and what it led is led elsewhere"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = killable(nodes)
        led = Leadership.of(arena, names_in_cluster(arena, victims))
        with ExitStack() as undo:
            # All at once: a quorum that was killed as a whole comes back only together.
            undo.callback(in_parallel, lambda node: node.restart(), victims)
            begun = time.monotonic()
            in_parallel(lambda node: node.kill(), victims)
            yield self._bite(arena, victims, led, begun)

    def _bite(self, arena: Arena, victims: Sequence[Killable], led: Leadership, begun: float) -> Bite:
        if not victims:
            return Bite(False, "there was nobody to kill")
        alive = [node.name for node in victims if node.running()]
        if alive:
            return Bite(False, f"{', '.join(alive)} still runs after SIGKILL", way="process")
        gone = f"process of {', '.join(node.name for node in victims)} gone"
        measured = {"killed": float(len(victims))}
        if not led.names:
            return Bite(True, gone, measured, way="process")
        moved = led.wait_taken_over(arena, begun)
        return Bite(moved.moved, f"{gone}; {moved.proof}", {**measured, **moved.measured}, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        victims = killable(nodes)
        names = [node.name for node in nodes]
        return wait_whole(arena, names, lambda: not_running(victims), "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "kill"}

    def __str__(self) -> str:
        return "kill"


def killable(nodes: Sequence[Node]) -> list[Killable]:
    return able(nodes, Killable, "{} cannot be killed")


fault_class = Kill
