"""SIGSTOP: the process keeps its connections, answers no request, and later resumes as if nothing had happened."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import Leadership, able, names_in_cluster, wait_whole
from harness.contracts import Arena, Bite, Healing, Node, Pausable
from harness.errors import WaitTimeout
from harness.targets import leader_of
from harness.waiting import in_parallel, wait_until

_STOP_LIMIT_S = 5.0


@dataclass(frozen=True)
class Pause:
    """Pauses brokers or controllers. Bites when the kernel reports them as stopped and other nodes lead what they led."""

    needs: ClassVar[type] = Pausable
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = (
        "the kernel reports every process as stopped, and other nodes lead what it led"
    )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = _pausable(nodes)
        led = Leadership.of(arena, names_in_cluster(arena, targets))
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.resume)
            begun = time.monotonic()
            in_parallel(lambda node: node.pause(), targets)
            yield self._bite(arena, targets, led, begun)

    def _bite(self, arena: Arena, targets: Sequence[Pausable], led: Leadership, begun: float) -> Bite:
        if not targets:
            return Bite(False, "there was no node to pause")
        try:  # a process is stopped only when the last of its threads has seen the signal
            limit_s = arena.patience * _STOP_LIMIT_S
            wait_until(lambda: all(node.paused() for node in targets), limit_s, "")
        except WaitTimeout:
            awake = [node.name for node in targets if not node.paused()]
            return Bite(False, f"{', '.join(awake)} is not stopped after SIGSTOP", way="process")
        stopped = f"process of {', '.join(node.name for node in targets)} stopped"
        measured = {"paused": float(len(targets))}
        if not led.names:
            return Bite(True, stopped, measured, way="process")
        moved = led.wait_taken_over(arena, begun)
        return Bite(moved.moved, f"{stopped}; {moved.proof}", {**measured, **moved.measured}, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = _pausable(nodes)

        def stopped() -> str | None:
            names = [node.name for node in targets if node.paused()]
            return f"{', '.join(names)} still stopped" if names else None

        return wait_whole(arena, [node.name for node in nodes], stopped, "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "pause"}

    def __str__(self) -> str:
        return "pause"


def _pausable(nodes: Sequence[Node]) -> list[Pausable]:
    return able(nodes, Pausable, "{} cannot be paused")


cases = (Case(Pause(), leader_of(0)),)
fault_class = Pause
