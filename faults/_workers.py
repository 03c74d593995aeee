"""What faults on workers measure: whether a worker gets anything done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from faults._measure import able
from harness.contracts import Arena, Healing, Node, WorkerNode
from harness.errors import FaultError, WaitTimeout
from harness.waiting import wait_until

PROGRESS_LIMIT_S = 60.0  # a group waits 10 s for a dead member, a transaction is ended after 30 s


def workers_of(nodes: Sequence[Node]) -> list[WorkerNode]:
    return able(nodes, WorkerNode, "{} is no worker")


def worker_named(arena: Arena, name: str) -> WorkerNode:
    """One that can be stopped at a moment of its work."""
    for node in arena.nodes():
        if node.name == name and isinstance(node, WorkerNode):
            return node
    raise FaultError(f"there is no worker {name} in this run that could be stopped at a moment")


def done(workers: Sequence[WorkerNode]) -> dict[str, int]:
    """Records acked by or delivered to each worker so far."""
    return {w.name: w.counters().acked + w.counters().delivered for w in workers}


def wait_progress(workers: Sequence[WorkerNode], also: Callable[[], str | None], limit_s: float) -> Healing:
    """Wait until `also` has no complaint and every worker got something done since this was called."""
    begun, before = time.monotonic(), done(workers)
    last = "nothing asked yet"

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
    told = f"{', '.join(before)}: {new} new records acked or delivered after {took:.1f} s"
    return Healing(True, told, {"healed_s": round(took, 3), "new_records": float(new)})
