"""Another producer takes over a producer's transactional id: the first one is fenced in the middle of its work."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import TRANSACTIONAL, Case
from faults._workers import wait_progress, workers_of
from harness.contracts import Arena, Bite, Healing, Node, WorkerNode
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.kafka.protocol.transactions import ProducerIdentity, init_producer_id
from harness.targets import producer
from harness.waiting import wait_until

_ASK_LIMIT_S = 5.0
_TAKE_LIMIT_S = 30.0
_SESSION_LIMIT_S = 45.0
_TRANSACTION_TIMEOUT_MS = 30_000
# The coordinator is loading, moving, or first ends the fenced producer's open transaction: ask again.
_RETRIABLE = frozenset({14, 15, 16, 51})


@dataclass(frozen=True)
class FenceProducer:
    """Bites when the coordinator gave the id to the hijacker and the worker then opened a new session by itself.

    The hijacker sends nothing. The worker's new session fences it in turn, so there is nothing to undo.
    """

    needs: ClassVar[type] = WorkerNode
    requests: ClassVar[tuple[str, ...]] = ("InitProducerId",)
    ways: ClassVar[Mapping[str, str]] = {"request": "workers that have a transactional id"}
    bites_when: ClassVar[str] = "the id was given to another producer, and the worker opened a new session"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        workers = workers_of(nodes)
        for worker in workers:
            if not worker.transactional_id:
                raise FaultError(f"{worker.name} has no transactional id, so it cannot be fenced")
        yield self._bite(arena, workers)

    def _bite(self, arena: Arena, workers: Sequence[WorkerNode]) -> Bite:
        if not workers:
            return Bite(False, "there was no producer to fence", way="request")
        begun, proofs = time.monotonic(), []
        before = {worker.name: worker.counters().sessions for worker in workers}
        measured: dict[str, float] = {"fenced": float(len(workers))}
        for worker in workers:
            taken = _take_over(arena, worker.transactional_id)
            if isinstance(taken, str):
                return Bite(False, f"the id of {worker.name} could not be taken: {taken}", way="request")
            proofs.append(
                f"id of {worker.name} taken with producer id {taken.producer_id}, epoch {taken.epoch}"
            )
            measured |= {"producer_id": float(taken.producer_id), "epoch": float(taken.epoch)}

        def untouched() -> list[str]:
            return [worker.name for worker in workers if worker.counters().sessions <= before[worker.name]]

        try:
            wait_until(lambda: not untouched(), arena.patience * _SESSION_LIMIT_S, "")
        except WaitTimeout:
            names = ", ".join(untouched())
            return Bite(False, f"{'; '.join(proofs)}; no new session of {names}", measured, way="request")
        took = time.monotonic() - begun
        measured["new_session_s"] = round(took, 3)
        return Bite(True, f"{'; '.join(proofs)}; new session after {took:.1f} s", measured, way="request")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return wait_progress(arena, workers_of(nodes))

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "fence_producer"}

    def __str__(self) -> str:
        return "fence_producer"


def _take_over(arena: Arena, transactional_id: str) -> ProducerIdentity | str:
    """Initialise a producer with the id; return its identity, or the last error as text."""
    last = "no coordinator"

    def given() -> ProducerIdentity | None:
        nonlocal last
        view = arena.cluster.view()
        try:
            name = view.coordinator(transactional_id, transaction=True)
            if name is None:
                return None
            place = view.broker_places()[name].control
            answer = init_producer_id(place, transactional_id, _TRANSACTION_TIMEOUT_MS, _ASK_LIMIT_S)
        except ClusterError as error:
            last = str(error)
            return None
        last = f"error {answer.error} of {name}"
        return None if answer.error in _RETRIABLE else answer

    try:
        answer = wait_until(given, arena.patience * _TAKE_LIMIT_S, "")
    except WaitTimeout:
        return last
    return last if answer.error else answer


cases = (Case(FenceProducer(), producer(1), modes=TRANSACTIONAL),)
fault_class = FenceProducer
