"""Hold what one worker's connection sends from a chosen moment of its transaction on, and deliver it at a later moment.

This is hold_requests, timed: a hook in the worker's code makes it wait until its next requests will be held, and again
until the held requests are delivered and answered. Moments are listed in harness.workers.breakpoints; without `until` the
schedule decides when the requests are delivered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._cases import Case
from faults._workers import healed_with, worker_named
from faults.hold_requests import HoldRequests, holding
from harness.contracts import Arena, Bite, Healing, Node, WorkerNode
from harness.errors import WaitTimeout
from harness.waiting import in_parallel, wait_until
from harness.workers.breakpoints import Moment

_REACH_LIMIT_S = 30.0


@dataclass(frozen=True)
class LateRequests(HoldRequests):
    """Bites when the worker was seen waiting at both moments and one of its requests was held in between.

    No other client may send such requests through the lane to the targets: the first request that comes is held.
    """

    worker: str = "producer-1"
    since: str = Moment.BEFORE_COMMIT.value
    until: str = Moment.MIDWAY_TO_ABORT.value
    ways: ClassVar[Mapping[str, str]] = {"hook": "a worker that has such moments"}
    bites_when: ClassVar[str] = (
        "a proxy in the client lane holds a request of a chosen kind that was sent after the first moment, "
        "and the worker waits at the second"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for moment in filter(None, (self.since, self.until)):
            Moment(moment)  # raises an error that lists the moments

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        worker, targets = worker_named(arena, self.worker), holding(nodes)
        with ExitStack() as undo:
            undo.callback(worker.go_on)  # runs last: the held requests are delivered and answered by then
            limit_s = arena.patience * _REACH_LIMIT_S
            if _reaches(worker, self.since, limit_s) is None:
                yield self._not_reached(self.since, limit_s)
                return
            for node in targets:
                undo.callback(node.release_requests)
            in_parallel(lambda node: node.hold_requests(self.how), targets)
            worker.go_on()
            yield self._seen_to_end(worker, self.bite(targets), limit_s)

    def _seen_to_end(self, worker: WorkerNode, bite: Bite, limit_s: float) -> Bite:
        """Keep the worker at the later moment, if there is one, and add that to the bite."""
        bite = replace(bite, way="hook")
        if not bite.bit or not self.until:
            return bite
        took_s = _reaches(worker, self.until, limit_s)
        if took_s is None:
            return self._not_reached(self.until, limit_s)
        return replace(
            bite,
            proof=f"{bite.proof}, sent after {self.since}; {worker.name} waited at {self.until} {took_s:g} s later",
            measured={**bite.measured, "reached_s": took_s},
        )

    def _not_reached(self, moment: str, limit_s: float) -> Bite:
        return Bite(False, f"{self.worker} did not reach {moment} in {limit_s:g} s", way="hook")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return healed_with(self.worker, arena, super().healed(arena, nodes))

    def describe(self) -> Mapping[str, Any]:
        aim = {"worker": self.worker, "since": self.since, "until": self.until}
        return {**super().describe(), "fault": "late_requests", **aim}

    def __str__(self) -> str:
        return f"late_requests-{self.kinds.replace('/', '-')}"


def _reaches(worker: WorkerNode, moment: str, limit_s: float) -> float | None:
    """Return the seconds until the worker waits at the moment; None if it does not get there in time."""
    begun = time.monotonic()
    worker.stop_at(moment)
    try:
        wait_until(worker.waits, limit_s, "", every_s=0.005)
    except WaitTimeout:
        return None
    return round(time.monotonic() - begun, 3)


cases: tuple[Case, ...] = ()  # suites/hazards/test_late_end_transaction.py holds it
fault_class = LateRequests
