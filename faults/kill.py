"""SIGKILL: the process is gone, without a chance to say so; the undo starts it again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._measure import Leadership, in_parallel, wait_whole
from harness.contracts import Arena, Bite, Healing, Killable, Node
from harness.errors import FaultError


@dataclass(frozen=True)
class Kill:
    """Bites when every process is gone and what it led is led elsewhere."""

    needs: ClassVar[type] = Killable
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = "every process is gone and what it led is led elsewhere"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = _killable(nodes)
        led = Leadership.of(arena, _in_cluster(arena, victims))
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
            return Bite(False, f"{', '.join(alive)} still runs after SIGKILL")
        gone = f"process of {', '.join(node.name for node in victims)} gone"
        if not led.names:
            return Bite(True, gone, {"killed": float(len(victims))})
        moved = led.wait_moved(arena, begun)
        return Bite(moved.moved, f"{gone}; {moved.proof}", {"killed": float(len(victims)), **moved.measured})

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        victims = _killable(nodes)

        def down() -> str | None:
            names = [node.name for node in victims if not node.running()]
            return f"{', '.join(names)} not running" if names else None

        return wait_whole(arena, [node.name for node in nodes], down, "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "kill"}

    def __str__(self) -> str:
        return "kill"


def _killable(nodes: Sequence[Node]) -> list[Killable]:
    for node in nodes:
        if not isinstance(node, Killable):
            raise FaultError(f"{node.name} cannot be killed")
    return [node for node in nodes if isinstance(node, Killable)]


def _in_cluster(arena: Arena, nodes: Sequence[Node]) -> list[str]:
    own = {node.name for node in arena.cluster.nodes()}
    return [node.name for node in nodes if node.name in own]


fault_class = Kill
