"""Shared by faults on workers: measure whether a worker makes progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from faults._measure import able
from harness.contracts import Arena, Healing, Node, WorkerNode
from harness.errors import FaultError, WaitTimeout
from harness.waiting import wait_until

_PROGRESS_LIMIT_S = 60.0  # a group waits 10 s for a dead member, a transaction is ended after 30 s


def workers_of(nodes: Sequence[Node]) -> list[WorkerNode]:
    return able(nodes, WorkerNode, "{} is not a worker")


def worker_named(arena: Arena, name: str) -> WorkerNode:
    """Return the worker of that name, which must be one that can be stopped at a moment of its work."""
    for node in arena.nodes():
        if node.name == name and isinstance(node, WorkerNode):
            return node
    raise FaultError(f"there is no worker {name} in this run that could be stopped at a moment")


def done(workers: Sequence[WorkerNode]) -> dict[str, int]:
    """Return the number of records acked by or delivered to each worker so far."""
    return {w.name: w.counters().acked + w.counters().delivered for w in workers}


def wait_progress(
    arena: Arena, workers: Sequence[WorkerNode], also: Callable[[], str | None] = lambda: None
) -> Healing:
    """Wait until `also` has no complaint and every worker has made progress since this call."""
    begun, before = time.monotonic(), done(workers)
    limit_s = arena.patience * _PROGRESS_LIMIT_S
    last = "not checked yet"

    def going() -> bool:
        nonlocal last
        idle = [name for name, count in done(workers).items() if count == before[name]]
        last = also() or (f"nothing new acked by or delivered to {', '.join(idle)}" if idle else "")
        return not last

    try:
        wait_until(going, limit_s, "", every_s=0.1)
    except WaitTimeout:
        return Healing(False, f"no progress after {limit_s:g} s: {last}", {})
    took, new = time.monotonic() - begun, sum(done(workers).values()) - sum(before.values())
    proof = f"{', '.join(before)}: {new} new records acked or delivered after {took:.1f} s"
    return Healing(True, proof, {"healed_s": round(took, 3), "new_records": float(new)})


def healed_with(worker: str, arena: Arena, healing: Healing) -> Healing:
    """Return the healing; if it succeeded, it is whole only when the worker of that name makes progress too."""
    if not healing.healed:
        return healing
    progress = wait_progress(arena, [worker_named(arena, worker)])
    return Healing(
        progress.healed, f"{healing.proof}; {progress.proof}", {**progress.measured, **healing.measured}
    )
