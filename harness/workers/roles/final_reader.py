"""The final reader: a fresh client that reads each partition of every topic from its log start to its end, twice.

It reads once with read_uncommitted and once with read_committed. It records the bounds first, once they no longer change:
reading too early after a failover shows false losses. When it has read a partition up to its end, it asks for the end
again; the partition is done when the reading has reached an end that was asked for after the reading began, and only then
its `reading` event is written. So a reader that is killed half way leaves true evidence of which partitions were read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from harness.contracts import Client, Consumer, ConsumerSpec, TopicToRead, WorkerSpec
from harness.ledger.journal import Ledger, RowJournal
from harness.ledger.manifest import ISOLATIONS
from harness.workers.counters import Board


@dataclass(frozen=True, kw_only=True)
class FinalReaderSpec(WorkerSpec):
    role: ClassVar[str] = "final_reader"
    ends_by_itself: ClassVar[bool] = True

    topics: tuple[TopicToRead, ...]
    limit_s: float
    bounds_every_s: float = 0.3  # between two questions for the bounds
    open_limit_s: float = 15.0  # how long to wait for a last stable offset below the end


class FinalReader:
    spec_class = FinalReaderSpec

    def __init__(self, spec: FinalReaderSpec, board: Board) -> None:
        self._spec = spec

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._spec.limit_s
        journals = {isolation: (ledger.log(isolation), ledger.effects(isolation)) for isolation in ISOLATIONS}
        missing: dict[str, list[str]] = {isolation: [] for isolation in ISOLATIONS}
        ledger.events.write("reading_begins", partitions=[topic.partitions for topic in self._spec.topics])
        for number, topic in enumerate(self._spec.topics):
            with _Reading(self._spec, client, number, topic, deadline, ledger) as reading:
                bounds = reading.bounds()
                for isolation in ISOLATIONS:
                    unread = reading.read(isolation, bounds, *journals[isolation])
                    missing[isolation] += [f"{topic.name}-{partition}" for partition in unread]
        for isolation, places in missing.items():
            detail = f"did not reach the end of {', '.join(places)} in time" if places else ""
            ledger.events.write("read", isolation=isolation, complete=not places, detail=detail)


Bounds = tuple[int, int, int]  # start, end and last stable offset


def _end(isolation: str, bounds: Bounds) -> int:
    """Return the offset up to which a reader of this isolation can read."""
    return bounds[1] if isolation == "read_uncommitted" else bounds[2]


class _Reading:
    """The reading of one topic."""

    def __init__(
        self,
        spec: FinalReaderSpec,
        client: Client,
        number: int,
        topic: TopicToRead,
        deadline: float,
        ledger: Ledger,
    ) -> None:
        self._spec, self._client, self._number, self._topic = spec, client, number, topic
        self._deadline, self._ledger = deadline, ledger
        self._uncommitted, self._committed = (self._open(isolation, None) for isolation in ISOLATIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._uncommitted.close()
        self._committed.close()

    def _open(self, isolation: str, assign: Mapping[int, int] | None) -> Consumer:
        spec = self._spec
        consumer_spec = ConsumerSpec(
            bootstrap=spec.bootstrap,
            security=spec.security,
            topic=self._topic.name,
            run=spec.run,
            mode=spec.mode,
            isolation=isolation,
            assign=assign,
            topic_number=self._number,
            effects=True,
            check_crcs=True,
        )
        return self._client.open_consumer(consumer_spec, lambda how, partitions: None)

    def _ask(self, partition: int) -> Bounds:
        left = max(1.0, self._deadline - time.monotonic())
        start, end = self._uncommitted.bounds(partition, left)
        return start, end, self._committed.bounds(partition, left)[1]

    def bounds(self) -> dict[int, Bounds]:
        """Return the bounds of each partition once two questions in a row have had the same answers."""
        give_up_open = time.monotonic() + self._spec.open_limit_s
        before: dict[int, Bounds] = {}
        while True:
            now = {partition: self._ask(partition) for partition in range(self._topic.partitions)}
            closed = all(stable == end for _, end, stable in now.values())
            still = now == before and (closed or time.monotonic() > give_up_open)
            if still or time.monotonic() > self._deadline:
                for partition, bounds in now.items():
                    self._write_bounds("before", partition, bounds)
                return now
            before = now
            time.sleep(self._spec.bounds_every_s)

    def _write_bounds(self, when: str, partition: int, bounds: Bounds) -> None:
        start, end, stable = bounds
        self._ledger.events.write(
            "bounds", when=when, topic=self._number, partition=partition, start=start, end=end, stable=stable
        )

    def read(
        self, isolation: str, bounds: Mapping[int, Bounds], log: RowJournal, effects: RowJournal
    ) -> list[int]:
        """Read all partitions; return those whose end was not reached in time."""
        reached = {p: start for p, (start, _, _) in bounds.items()}
        until = {p: _end(isolation, at) for p, at in bounds.items()}
        left = set(bounds)
        consumer = self._open(isolation, {p: reached[p] for p in sorted(left)})
        try:
            while True:
                left -= {p for p in sorted(left) if self._done(isolation, p, reached[p], until)}
                if not left or time.monotonic() > self._deadline:
                    break
                batch = consumer.poll(0.2)
                if len(batch.rows):
                    log.append(batch.rows)
                if batch.effects is not None and len(batch.effects):
                    effects.append(batch.effects)
                # Markers may follow the last record: there only the end-of-partition event shows that the end is reached.
                for partition, end in (*batch.positions.items(), *batch.ends.items()):
                    reached[partition] = max(end, reached[partition])
        finally:
            consumer.close()
        for partition in sorted(left):
            self._write_reading(isolation, partition, reached[partition], until[partition])
        return sorted(left)

    def _done(self, isolation: str, partition: int, reached: int, until: dict[int, int]) -> bool:
        """Ask for the end again. If it is reached, record that, behind the rows that were read, and return True."""
        if reached < until[partition]:
            return False
        now = self._ask(partition)
        until[partition] = _end(isolation, now)
        if reached < until[partition]:
            return False
        self._write_bounds("after", partition, now)
        self._write_reading(isolation, partition, reached, until[partition])
        return True

    def _write_reading(self, isolation: str, partition: int, reached: int, until: int) -> None:
        self._ledger.events.write(
            "reading",
            isolation=isolation,
            topic=self._number,
            partition=partition,
            reached=reached,
            until=until,
        )


role_class = FinalReader
