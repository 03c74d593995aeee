"""A clean stop by an operator (SIGTERM); the undo starts the process again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import Leadership, Moved, able, names_in_cluster, not_running, wait_whole
from harness.contracts import Arena, Bite, Healing, Node, Stoppable
from harness.errors import UsageError, WaitTimeout
from harness.targets import leader_of
from harness.waiting import in_parallel


@dataclass(frozen=True)
class Restart:
    """Stops all targets at once. A node asks the controller for a shutdown, which moves its leaders, before it ends.

    If a majority of the controllers is among the targets, no controller answers, and the process waits. After
    `limit_s` it is killed, and the proof says so: then the stop was not clean.
    """

    limit_s: float = 20.0
    needs: ClassVar[type] = Stoppable
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = "every process ended after SIGTERM, and other nodes lead what it led"

    def __post_init__(self) -> None:
        if not self.limit_s > 0:
            raise UsageError(f"restart: limit_s={self.limit_s:g} leaves no time to stop; set more than 0")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = stoppable(nodes)
        led = Leadership.of(arena, names_in_cluster(arena, targets))
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: node.restart(), targets)
            stops: list[Stop] = []
            with ThreadPoolExecutor(max_workers=1) as pool:  # leaders move before the process has ended
                watching = pool.submit(led.wait_taken_over, arena, time.monotonic())
                in_parallel(lambda node: stops.append(stop(node, self.limit_s)), targets)
                moved = watching.result()
            yield self._bite(targets, stops, moved if led.names else None)

    def _bite(self, targets: Sequence[Stoppable], stops: Sequence[Stop], moved: Moved | None) -> Bite:
        if not targets:
            return Bite(False, "there was no node to stop")
        if still := [node.name for node in targets if node.running()]:
            return Bite(False, f"{', '.join(still)} still runs", way="process")
        ended = sorted(stops, key=lambda each: each.name)
        proof = "; ".join(map(str, ended))
        measured = {
            "stopped": float(len(ended)),
            "killed": float(sum(each.code is None for each in ended)),
            "slowest_stop_s": round(max(each.seconds for each in ended), 3),
        }
        if moved is None:  # workers lead nothing
            return Bite(True, proof, measured, way="process")
        return Bite(moved.moved, f"{proof}; {moved.proof}", {**measured, **moved.measured}, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = stoppable(nodes)
        names = [node.name for node in nodes]
        return wait_whole(arena, names, lambda: not_running(targets), "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "restart", "limit_s": self.limit_s}

    def __str__(self) -> str:
        return "restart"


@dataclass(frozen=True)
class Stop:
    """The end of one process: its exit code and how long it took."""

    name: str
    code: int | None  # None: it had to be killed
    seconds: float

    def __str__(self) -> str:
        how = (
            "was killed, as it did not end by itself" if self.code is None else f"ended with code {self.code}"
        )
        return f"{self.name} {how} after {self.seconds:.1f} s"


def stop(node: Stoppable, limit_s: float) -> Stop:
    """Stop the node cleanly, or kill it if it does not end within the limit."""
    begun = time.monotonic()
    try:
        code: int | None = node.shut_down(limit_s)
    except WaitTimeout:
        node.kill()
        code = None
    return Stop(node.name, code, time.monotonic() - begun)


def stoppable(nodes: Sequence[Node]) -> list[Stoppable]:
    return able(nodes, Stoppable, "{} cannot be stopped cleanly")


cases = (Case(Restart(), leader_of(0)),)
fault_class = Restart
