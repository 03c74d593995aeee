"""SIGSTOP of producers and consumers: a client stops without noticing, and later resumes where it stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._cases import Case
from faults._workers import done, wait_progress, workers_of
from harness.contracts import Arena, Bite, Healing, Node, WorkerNode
from harness.errors import WaitTimeout
from harness.kafka.admin import Administrator
from harness.targets import consumer, producer
from harness.waiting import wait_until

_WATCH_S = 1.0  # how long nothing may move
_MOVE_LIMIT_S = 10.0
_STOP_LIMIT_S = 5.0
_OVERTAKEN_LIMIT_S = 180.0  # a session takes 10 s to end; a busy machine then has a backlog to work off


@dataclass(frozen=True)
class PauseWorker:
    """Bites when the kernel reports every process as stopped and no worker makes progress, as all did before."""

    until_overtaken: bool = (
        False  # bites only when the group has committed further in every partition with records
    )

    needs: ClassVar[type] = WorkerNode
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = "the worker's process is stopped and its counters do not change for a second"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        workers = workers_of(nodes)
        idle = _idle(workers, arena.patience * _MOVE_LIMIT_S)
        with ExitStack() as undo:
            for worker in workers:
                undo.callback(worker.resume)
            for worker in workers:
                worker.pause()
            bite = self._bite(arena, workers, idle)
            if bite.bit and self.until_overtaken:
                bite = _overtaken(arena, bite)
            yield bite

    def _bite(self, arena: Arena, workers: Sequence[WorkerNode], idle: Sequence[str]) -> Bite:
        if not workers:
            return Bite(False, "there was no worker to pause", way="process")
        if idle:
            return Bite(
                False, f"{', '.join(idle)} made no progress before it was paused either", way="process"
            )
        stop_limit_s, watch_s = arena.patience * _STOP_LIMIT_S, arena.patience * _WATCH_S
        with suppress(WaitTimeout):
            wait_until(lambda: all(worker.paused() for worker in workers), stop_limit_s, "")
        if awake := [worker.name for worker in workers if not worker.paused()]:
            return Bite(False, f"{', '.join(awake)} not stopped after SIGSTOP", way="process")
        before = done(workers)
        time.sleep(watch_s)
        moved = sum(done(workers).values()) - sum(before.values())
        names = ", ".join(worker.name for worker in workers)
        proof = f"process of {names} stopped; {moved} records acked or delivered in {watch_s:g} s"
        measured = {"paused": float(len(workers)), "watched_s": watch_s, "records_moved": float(moved)}
        return Bite(moved == 0, proof, measured, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        workers = workers_of(nodes)

        def stopped() -> str | None:
            names = [worker.name for worker in workers if worker.paused()]
            return f"{', '.join(names)} still stopped" if names else None

        return wait_progress(arena, workers, stopped)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "pause_worker", "until_overtaken": self.until_overtaken}

    def __str__(self) -> str:
        return "pause_worker"


def _overtaken(arena: Arena, bite: Bite) -> Bite:
    """Wait until the run's group has committed further than now, in every partition that has records.

    A partition without a commit counts from its start: the paused worker may have records of that partition.
    """
    administrator, begun = Administrator(arena.cluster, arena.topic), time.monotonic()
    limit_s = arena.patience * _OVERTAKEN_LIMIT_S
    last = administrator.committed(arena.group)
    before = {
        number: last.get(number, start)
        for number, (start, end) in administrator.offsets().items()
        if end > start
    }

    def behind() -> list[int]:
        nonlocal last
        last = administrator.committed(arena.group)
        return [number for number, offset in before.items() if last.get(number, -1) <= offset]

    try:
        wait_until(lambda: before and not behind(), limit_s, "", every_s=0.25)
    except WaitTimeout:
        proof = (
            f"{bite.proof}; the group has not committed further in {limit_s:g} s: {before} then, {last} now"
        )
        return replace(bite, bit=False, proof=proof)
    overtaken_s = round(time.monotonic() - begun, 3)
    proof = f"{bite.proof}; the group went on without it in {overtaken_s:g} s: {before} then, {last} now"
    return replace(bite, proof=proof, measured={**bite.measured, "overtaken_s": overtaken_s})


def _idle(workers: Sequence[WorkerNode], limit_s: float) -> list[str]:
    """Return the workers that make no progress: that they make none when paused would prove nothing."""
    before = done(workers)

    def still() -> list[str]:
        # A worker that waits at a moment of its work has made progress to get there.
        waiting = {worker.name for worker in workers if worker.waits()}
        return [
            name for name, count in done(workers).items() if count == before[name] and name not in waiting
        ]

    with suppress(WaitTimeout):
        wait_until(lambda: not still(), limit_s, "")
    return still()


cases = (
    Case(PauseWorker(), producer(1), name="pause_worker-producer"),
    Case(PauseWorker(), consumer(1), name="pause_worker-consumer"),
)
fault_class = PauseWorker
