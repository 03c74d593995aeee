"""An application that works on one batch for too long: its process runs and the library's threads go on, but it polls no more.

A hook in the worker's code makes it wait at a moment of its work: before_work (the member has received records and has not worked
on them) or after_work (it has worked on them and has not committed them). If the stall is longer than `max.poll.interval.ms`,
the library leaves the group, and the worker then goes on with partitions that it has lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._workers import done, wait_progress, workers_of
from harness.contracts import Arena, Bite, Healing, Node, WorkerNode
from harness.errors import WaitTimeout
from harness.targets import consumer
from harness.waiting import wait_until
from harness.workers.breakpoints import Moment

_REACH_LIMIT_S = 30.0
_WATCH_S = 1.0  # how long nothing may move


@dataclass(frozen=True)
class StallWorker:
    """Bites when every worker waits at the moment, runs, and makes no progress."""

    moment: str = Moment.BEFORE_WORK.value

    needs: ClassVar[type] = WorkerNode
    ways: ClassVar[Mapping[str, str]] = {"hook": "a worker that has such a moment"}
    bites_when: ClassVar[str] = (
        "the worker waits at that moment, its process runs, and its counters do not change for a second"
    )

    def __post_init__(self) -> None:
        Moment(self.moment)  # raises an error that lists the moments

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        workers = workers_of(nodes)
        with ExitStack() as undo:
            for worker in workers:
                undo.callback(worker.go_on)
            yield self._bite(arena, workers)

    def _bite(self, arena: Arena, workers: Sequence[WorkerNode]) -> Bite:
        if not workers:
            return Bite(False, "there was no worker to stall", way="hook")
        for worker in workers:
            worker.stop_at(self.moment)
        limit_s, watch_s = arena.patience * _REACH_LIMIT_S, arena.patience * _WATCH_S
        names, begun = ", ".join(worker.name for worker in workers), time.monotonic()
        try:
            wait_until(lambda: all(worker.waits() for worker in workers), limit_s, "", every_s=0.005)
        except WaitTimeout:
            return Bite(False, f"{names} did not reach {self.moment} in {limit_s:g} s", way="hook")
        reached_s, before = round(time.monotonic() - begun, 3), done(workers)
        time.sleep(watch_s)
        moved = sum(done(workers).values()) - sum(before.values())
        idle = moved == 0 and all(worker.running() and not worker.paused() for worker in workers)
        proof = f"{names} waits at {self.moment}; {moved} records acked or delivered in {watch_s:g} s"
        measured = {"reached_s": reached_s, "watched_s": watch_s, "records_moved": float(moved)}
        return Bite(idle, proof, measured, way="hook")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        workers = workers_of(nodes)

        def waiting() -> str | None:
            names = [worker.name for worker in workers if worker.waits()]
            return f"{', '.join(names)} still waits" if names else None

        return wait_progress(arena, workers, waiting)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "stall_worker", "moment": self.moment}

    def __str__(self) -> str:
        return "stall_worker" if self.moment == Moment.BEFORE_WORK else f"stall_worker-{self.moment}"


cases = (Case(StallWorker(), consumer(1)),)
fault_class = StallWorker
