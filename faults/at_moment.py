"""Another fault at a chosen moment of a worker's work: a hook in the worker's code makes it wait there while the fault begins.

Moments: after_produce, after_send_offsets, during_commit, after_commit of a transaction, before_work and after_work of a
group's member and more (harness.workers.breakpoints). The fault is given as data, as its `describe` returns it, and is held on the nodes that the target picks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from faults._cases import Case
from faults._workers import healed_with, worker_named
from harness.contracts import Arena, Bite, Fault, Healing, Killable, Node, Pausable, WorkerNode
from harness.errors import WaitTimeout
from harness.kafka.admin import Administrator
from harness.schedule import fault_of
from harness.waiting import wait_until
from harness.workers.breakpoints import Moment

_REACH_LIMIT_S = 30.0
_LOOK_EVERY_S = 0.05
_NO_SIGN_S = 5.0


@dataclass(frozen=True)
class AtMoment:
    """Bites when the worker was seen waiting at the moment and the inner fault bit.

    The worker resumes `stay_s` after the inner fault struck: a process of its targets is gone or stopped, or it has bitten.
    So the fault is active by then, however long it took to begin, and the worker goes on while the effect lasts. Some faults
    bite only when the worker goes on (fence_producer): without a sign of the fault it resumes after 5 s.
    """

    what: Mapping[str, Any] = field(default_factory=lambda: {"fault": "kill_worker"})
    moment: str = Moment.AFTER_PRODUCE.value
    worker: str = "copier-1"
    wait_s: float = (
        0.0  # at the moment, before the inner fault begins: lets other nodes go on without the worker
    )
    until_committed: bool = (
        False  # wait there until the group has committed records that it has not worked on
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
        begun, limit_s = time.monotonic(), arena.patience * _REACH_LIMIT_S
        with ExitStack() as undo:
            undo.callback(worker.go_on)
            try:
                if self.until_committed:
                    wait_until(worker.worked_on, limit_s, "")  # so that its partitions are known
                worker.stop_at(self.moment)
                wait_until(worker.waits, limit_s, "", every_s=0.005)
            except WaitTimeout:
                yield Bite(False, f"{worker.name} did not reach {self.moment} in {limit_s:g} s", way="hook")
                return
            reached_s = round(time.monotonic() - begun, 3)
            time.sleep(self.wait_s)
            if self.until_committed and not _committed_unworked(arena, worker, limit_s):
                yield Bite(False, f"nothing was committed that {worker.name} had not worked on", way="hook")
                return
            no_sign_s = arena.patience * _NO_SIGN_S
            bitten = undo.enter_context(_released_after(worker, nodes, self.stay_s, no_sign_s))
            bite = undo.enter_context(self.inner.hold(arena, nodes))
            bitten.set()
            yield replace(
                bite,
                proof=f"{worker.name} waited at {self.moment} after {reached_s:g} s; {bite.proof}",
                measured={**bite.measured, "reached_s": reached_s},
            )

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return healed_with(self.worker, arena, self.inner.healed(arena, nodes))

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "at_moment",
            "what": dict(self.what),
            "moment": self.moment,
            "worker": self.worker,
            "wait_s": self.wait_s,
            "until_committed": self.until_committed,
            "stay_s": self.stay_s,
        }

    def __str__(self) -> str:
        return f"at_moment-{self.moment}-{self.inner}"


def _committed_unworked(arena: Arena, worker: WorkerNode, limit_s: float) -> bool:
    """Wait until the group has committed an offset of the worker's partitions beyond what the worker has worked on.

    The worker has to stay a member meanwhile: then no other member works on these partitions.
    """
    administrator, worked_on = Administrator(arena.cluster, arena.topic), worker.worked_on()

    def beyond() -> bool:
        committed = administrator.committed(arena.group)
        return any(committed.get(partition, 0) > end for partition, end in worked_on.items())

    with suppress(WaitTimeout):
        return wait_until(beyond, limit_s, "", every_s=0.25)
    return False


@contextmanager
def _released_after(
    worker: WorkerNode, nodes: Sequence[Node], stay_s: float, no_sign_s: float
) -> Iterator[threading.Event]:
    """Let the worker go on, in the background, `stay_s` after a node was struck, the event was set, or no sign came."""
    bitten, ended = threading.Event(), threading.Event()

    def release() -> None:
        no_sign = time.monotonic() + no_sign_s
        while not (bitten.is_set() or _struck(nodes) or time.monotonic() > no_sign):
            if ended.wait(_LOOK_EVERY_S):
                return
        if not ended.wait(stay_s):
            worker.go_on()

    thread = threading.Thread(target=release, name=f"release {worker.name}", daemon=True)
    thread.start()
    try:
        yield bitten
    finally:
        ended.set()
        thread.join()


def _struck(nodes: Sequence[Node]) -> bool:
    return any(
        (isinstance(node, Killable) and not node.running()) or (isinstance(node, Pausable) and node.paused())
        for node in nodes
    )


cases: tuple[Case, ...] = ()  # suites/test_exactly_once.py holds it in pipelines
fault_class = AtMoment
