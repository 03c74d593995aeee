"""An observer: reads every topic of a run from its first record on, with one isolation level, during the faults.

It is not a member of any group and commits nothing. Reconciliation compares its records with the log of the final reader:
only an observer shows a record that was there and is gone, or that should never have been visible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Client, Counters, TopicToRead, WorkerSpec
from harness.ledger.journal import Ledger, RowJournal
from harness.workers.counters import Board
from harness.workers.roles._consumer_spec import reader_spec

ROUND_S = 0.1  # each topic is polled once in it
LAST_READ_S = 20.0  # how long to read on, at most, once asked to stop


@dataclass(frozen=True, kw_only=True)
class ObserverRoleSpec(WorkerSpec):
    role: ClassVar[str] = "observer"
    observes: ClassVar[bool] = True

    topics: tuple[TopicToRead, ...]
    isolation: str


class ObserverRole:
    spec_class = ObserverRoleSpec

    def __init__(self, spec: ObserverRoleSpec, board: Board) -> None:
        self._spec, self._board = spec, board
        self._counters = Counters()

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        topics = [topic.name for topic in self._spec.topics]
        # Before any row: sealing has to know that this reader is not a member of the group.
        ledger.events.write("observer", isolation=self._spec.isolation, topics=topics)
        journal = ledger.deliveries()
        readings: list[_TopicObserver] = []
        try:
            for number, topic in enumerate(self._spec.topics):
                readings.append(_TopicObserver(self._spec, client, number, topic))
            while not until():
                self._round(readings, journal)
            deadline = time.monotonic() + LAST_READ_S
            for reading in readings:
                reading.ask_for_ends(deadline)
            while time.monotonic() < deadline and not all(reading.at_its_end for reading in readings):
                self._round(readings, journal)
            behind = [place for reading in readings for place in reading.behind()]
            ledger.events.write("reached", complete=not behind, detail=", ".join(behind))
        finally:
            for reading in readings:
                reading.close()

    def _round(self, readings: list[_TopicObserver], journal: RowJournal) -> None:
        for reading in readings:
            got = reading.take(ROUND_S / len(readings), journal)
            self._counters = self._counters.plus(delivered=got)
        self._board.show(self._counters)


class _TopicObserver:
    """The reading of one topic."""

    def __init__(self, spec: ObserverRoleSpec, client: Client, number: int, topic: TopicToRead) -> None:
        self._name, self._partitions = topic.name, range(topic.partitions)
        self._at = dict.fromkeys(self._partitions, 0)  # how far each was read, markers included
        self._ends: dict[int, int] = {}
        self._consumer = client.open_consumer(
            reader_spec(
                spec,
                topic.name,
                spec.isolation,
                assign=dict.fromkeys(self._partitions, 0),
                topic_number=number,
            ),
            lambda how, partitions: None,
        )

    def take(self, timeout_s: float, journal: RowJournal) -> int:
        batch = self._consumer.poll(timeout_s)
        if len(batch.rows):
            journal.append(batch.rows)
        for partition, offset in (*batch.positions.items(), *batch.ends.items()):
            self._at[partition] = max(offset, self._at[partition])
        return len(batch.rows)

    def ask_for_ends(self, deadline: float) -> None:
        for partition in self._partitions:
            try:
                left_s = max(0.1, deadline - time.monotonic())
                self._ends[partition] = self._consumer.bounds(partition, left_s)[1]
            except Exception:  # noqa: BLE001  whatever the library raises: an end that is not known is not reached
                continue

    @property
    def at_its_end(self) -> bool:
        return not self.behind()

    def behind(self) -> list[str]:
        """The partitions whose end was not reached, or is not known."""
        return [
            f"{self._name}-{p} at {self._at[p]} of {self._ends.get(p, 'an end that is not known')}"
            for p in self._partitions
            if p not in self._ends or self._at[p] < self._ends[p]
        ]

    def close(self) -> None:
        self._consumer.close()


role_class = ObserverRole
