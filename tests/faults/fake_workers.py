"""Workers in memory, for tests of faults on clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import (
    Counters,
    Node,
)
from tests.fake_arena import FakeArena, make_arena


@dataclass
class FakeWorker:
    """Makes progress whenever its counters are read, as long as it runs; a `stubborn` worker does not obey."""

    name: str
    role: str = "producer"
    transactional_id: str = ""
    client_settings: Mapping[str, Any] = field(default_factory=dict)
    stays_in_group: bool = False
    stubborn: bool = False
    lazy: bool = False
    alive: bool = True
    stopped: bool = False
    sessions: int = 1
    records: int = 0
    moment: str = ""  # where it waits, as soon as it is asked to

    def stop_at(self, moment: str) -> None:
        self.moment = "" if self.lazy else moment

    def waits(self) -> bool:
        return bool(self.moment)

    def go_on(self) -> None:
        self.moment = ""

    def worked_on(self) -> Mapping[int, int]:
        return {0: 7}

    def kill(self) -> None:
        self.alive = self.stubborn

    def restart(self) -> None:
        self.alive = True

    def running(self) -> bool:
        return self.alive

    def pause(self) -> None:
        self.stopped = not self.stubborn

    def resume(self) -> None:
        self.stopped = False

    def paused(self) -> bool:
        return self.stopped

    def counters(self) -> Counters:
        self.records += self.alive and not self.stopped and not self.lazy
        acked, delivered = (0, self.records) if self.role == "consumer" else (self.records, 0)
        return Counters(acked=acked, delivered=delivered, sessions=self.sessions)


@dataclass
class WorkersArena(FakeArena):
    fakes: list[FakeWorker] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        return [*self.cluster.nodes(), *self.fakes]


def workers_in_memory() -> WorkersArena:
    """Return the arena with a transactional producer and a member of a group."""
    producer = FakeWorker("producer-1", transactional_id="orders-producer-1")
    consumer = FakeWorker("consumer-1", "consumer", "", {"group.protocol": "classic"}, True)
    made = WorkersArena(make_arena().cluster, fakes=[producer, consumer])
    made.cluster.coordinators[("orders-producer-1", True)] = "broker-2"
    return made
