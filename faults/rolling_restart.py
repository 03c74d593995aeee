"""A rolling restart, as for an upgrade: the targets are stopped and started one after the other, each in sync before the next."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import not_running, wait_whole
from faults.restart import Stop, stop, stoppable
from harness.contracts import Arena, Bite, Healing, Node, Stoppable
from harness.errors import UsageError
from harness.targets import every_broker
from harness.waiting import in_parallel


@dataclass(frozen=True)
class RollingRestart:
    """The whole roll happens when the window opens; the rest of the window is the time after it."""

    limit_s: float = 20.0  # for one clean stop
    needs: ClassVar[type] = Stoppable
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = (
        "each process was stopped for a while, and in sync again before the next one stopped"
    )

    def __post_init__(self) -> None:
        if not self.limit_s > 0:
            raise UsageError(
                f"rolling_restart: limit_s={self.limit_s:g} leaves no time to stop; set more than 0"
            )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = stoppable(nodes)
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: node.restart(), targets)
            yield self._roll(arena, targets)

    def _roll(self, arena: Arena, targets: Sequence[Stoppable]) -> Bite:
        if not targets:
            return Bite(False, "there was no node to restart")
        proofs: list[str] = []
        stops: list[Stop] = []
        away: list[float] = []
        for node in targets:
            begun = time.monotonic()
            stops.append(stop(node, self.limit_s))
            if node.running():
                return Bite(False, f"{node.name} still runs", way="process")
            node.restart()
            healing = self.healed(arena, [node])
            away.append(time.monotonic() - begun)
            if not healing.healed:
                return Bite(False, f"the roll ended at {node.name}: {healing.proof}", way="process")
            proofs.append(f"{stops[-1]}, in sync after {away[-1]:.1f} s")
        measured = {
            "restarted": float(len(targets)),
            "killed": float(sum(each.code is None for each in stops)),
            "slowest_stop_s": round(max(each.seconds for each in stops), 3),
            "slowest_s": round(max(away), 3),
            "roll_s": round(sum(away), 3),
        }
        return Bite(True, "; ".join(proofs), measured, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = stoppable(nodes)
        names = [node.name for node in nodes]
        return wait_whole(arena, names, lambda: not_running(targets), "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "rolling_restart", "limit_s": self.limit_s}

    def __str__(self) -> str:
        return "rolling_restart"


cases = (Case(RollingRestart(), every_broker(), hold_s=0.5),)
fault_class = RollingRestart
