"""Another fault at a chosen moment of a worker's work: a hook in the worker's code makes it wait there while the fault begins.

Moments: after_produce, after_send_offsets, during_commit, after_commit of a transaction, before_work of a group's member and
more (harness.workers.breakpoints). The fault is given as data, as its `describe` returns it, and is held on the nodes that the target picks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from faults._workers import PROGRESS_LIMIT_S, wait_progress, worker_named
from harness.contracts import Arena, Bite, Fault, Healing, Node
from harness.errors import WaitTimeout
from harness.schedule import fault_of
from harness.waiting import wait_until
from harness.workers.breakpoints import Moment

_REACH_LIMIT_S = 30.0


@dataclass(frozen=True)
class AtMoment:
    """Bites when the worker was seen waiting at the moment and the inner fault bit. The worker resumes `stay_s` after the
    inner fault began, so that the fault is active by then."""

    what: Mapping[str, Any] = field(default_factory=lambda: {"fault": "kill_worker"})
    moment: str = Moment.AFTER_PRODUCE.value
    worker: str = "copier-1"
    wait_s: float = (
        0.0  # at the moment, before the inner fault begins: lets other nodes go on without the worker
    )
    stay_s: float = 1.0
    # The same object from hold to healing: some faults remember the state before the hold.
    inner: Fault = field(init=False, repr=False, compare=False)

    needs: ClassVar[type] = Node
    ways: ClassVar[Mapping[str, str]] = {
        "hook": "a worker that has such moments, and what the inner fault needs"
    }
    bites_when: ClassVar[str] = "the worker waited at that moment, and the inner fault bites"

    def __post_init__(self) -> None:
        Moment(self.moment)  # raises an error that lists the moments
        object.__setattr__(self, "inner", fault_of(self.what))
        object.__setattr__(self, "needs", self.inner.needs)

    @property
    def deletes(self) -> bool:
        return bool(getattr(self.inner, "deletes", False))

    @property
    def requests(self) -> tuple[str, ...]:
        return tuple(getattr(self.inner, "requests", ()))

    @property
    def reads_logs(self) -> bool:
        return bool(getattr(self.inner, "reads_logs", False))

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        worker = worker_named(arena, self.worker)
        begun = time.monotonic()
        with ExitStack() as undo:
            undo.callback(worker.go_on)
            worker.stop_at(self.moment)
            try:
                wait_until(worker.waits, _REACH_LIMIT_S, "", every_s=0.005)
            except WaitTimeout:
                yield Bite(
                    False, f"{worker.name} did not reach {self.moment} in {_REACH_LIMIT_S:g} s", way="hook"
                )
                return
            reached_s = round(time.monotonic() - begun, 3)
            time.sleep(self.wait_s)
            let_go = threading.Timer(self.stay_s, worker.go_on)
            undo.callback(let_go.cancel)
            let_go.start()
            bite = undo.enter_context(self.inner.hold(arena, nodes))
            yield replace(
                bite,
                proof=f"{worker.name} waited at {self.moment} after {reached_s:g} s; {bite.proof}",
                measured={**bite.measured, "reached_s": reached_s},
            )

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        healing = self.inner.healed(arena, nodes)
        if not healing.healed:
            return healing
        worker = wait_progress([worker_named(arena, self.worker)], lambda: None, PROGRESS_LIMIT_S)
        return Healing(
            worker.healed, f"{healing.proof}; {worker.proof}", {**worker.measured, **healing.measured}
        )

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "at_moment",
            "what": dict(self.what),
            "moment": self.moment,
            "worker": self.worker,
            "wait_s": self.wait_s,
            "stay_s": self.stay_s,
        }

    def __str__(self) -> str:
        return f"at_moment-{self.moment}-{self.inner}"


fault_class = AtMoment
