"""SIGKILL of producers and consumers: they must recover unfinished work by themselves. The undo starts them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._cases import Case
from faults._workers import done, wait_progress, workers_of
from faults.kill import Kill
from harness.contracts import Arena, Bite, Healing, Node, WorkerNode
from harness.targets import consumer, producer


@dataclass(frozen=True)
class KillWorker:
    """Bites when every process has ended; healed when each restarted worker makes progress."""

    needs: ClassVar[type] = WorkerNode
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = "the worker's process has ended"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        workers = workers_of(nodes)
        with Kill().hold(arena, workers) as bite:
            measured = {**bite.measured, "records_before": float(sum(done(workers).values()))}
            yield replace(bite, measured=measured, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        workers = workers_of(nodes)

        def down() -> str | None:
            names = [worker.name for worker in workers if not worker.running()]
            return f"{', '.join(names)} not running" if names else None

        return wait_progress(arena, workers, down)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "kill_worker"}

    def __str__(self) -> str:
        return "kill_worker"


cases = (
    Case(KillWorker(), producer(1), name="kill_worker-producer"),
    Case(KillWorker(), consumer(1), name="kill_worker-consumer"),
)
fault_class = KillWorker
