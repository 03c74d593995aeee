"""The final reader: a fresh client that reads each partition of every topic from its log start to its end, twice.

Read_uncommitted and read_committed are read apart. The bounds are recorded first, once they stand still:
reading too early after a failover shows false losses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.board import Board
from harness.contracts import Client, Consumer, ConsumerSpec, Mode
from harness.ledger import Ledger, RowJournal

STANDS_STILL_S = 0.3
OPEN_TRANSACTIONS_LIMIT_S = 15.0  # how long to wait for a last stable offset below the end
ISOLATIONS = ("read_uncommitted", "read_committed")


class FinalReader:
    def __init__(self, spec: Mapping[str, Any], board: Board) -> None:
        self._spec = spec

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._spec["limit_s"]
        journals = {isolation: (ledger.log(isolation), ledger.effects(isolation)) for isolation in ISOLATIONS}
        missing: dict[str, list[str]] = {isolation: [] for isolation in ISOLATIONS}
        for number, topic in enumerate(self._spec["topics"]):
            reading = _Reading(self._spec, client, number, topic, deadline)
            bounds = reading.bounds()
            for partition, (start, end, stable) in bounds.items():
                ledger.events.write(
                    "bounds", topic=number, partition=partition, start=start, end=end, stable=stable
                )
            starts = {p: b[0] for p, b in bounds.items()}
            for isolation in ISOLATIONS:
                ends = {p: (b[1] if isolation == "read_uncommitted" else b[2]) for p, b in bounds.items()}
                unread = reading.read(isolation, starts, ends, *journals[isolation])
                missing[isolation] += [f"{topic['name']}-{partition}" for partition in unread]
        for isolation, places in missing.items():
            detail = f"did not reach the end of {', '.join(places)} in time" if places else ""
            ledger.events.write("read", isolation=isolation, complete=not places, detail=detail)


class _Reading:
    """The reading of one topic."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        client: Client,
        number: int,
        topic: Mapping[str, Any],
        deadline: float,
    ) -> None:
        self._spec, self._client, self._number, self._topic, self._deadline = (
            spec,
            client,
            number,
            topic,
            deadline,
        )

    def _open(self, isolation: str, assign: Mapping[int, int] | None) -> Consumer:
        spec = self._spec
        consumer_spec = ConsumerSpec(
            bootstrap=spec["bootstrap"],
            security=spec.get("security", {}),
            topic=self._topic["name"],
            run=spec["run"],
            mode=Mode(spec["mode"]),
            isolation=isolation,
            assign=assign,
            topic_number=self._number,
            effects=True,
            check_crcs=True,
        )
        return self._client.open_consumer(consumer_spec, lambda how, partitions: None)

    def bounds(self) -> dict[int, tuple[int, int, int]]:
        """Start, end and last stable offset of each partition, the same in two readings in a row."""
        deadline = self._deadline
        uncommitted, committed = (self._open(isolation, None) for isolation in ISOLATIONS)
        give_up_open = time.monotonic() + OPEN_TRANSACTIONS_LIMIT_S
        try:
            before: dict[int, tuple[int, int, int]] = {}
            while True:
                now = {}
                for partition in range(self._topic["partitions"]):
                    left = max(1.0, deadline - time.monotonic())
                    start, end = uncommitted.bounds(partition, left)
                    now[partition] = (start, end, committed.bounds(partition, left)[1])
                still = now == before
                closed = all(stable == end for _, end, stable in now.values())
                if (still and (closed or time.monotonic() > give_up_open)) or time.monotonic() > deadline:
                    return now
                before = now
                time.sleep(STANDS_STILL_S)
        finally:
            uncommitted.close()
            committed.close()

    def read(
        self,
        isolation: str,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        log: RowJournal,
        effects: RowJournal,
    ) -> list[int]:
        """Read all; returns the partitions whose end was not reached in time."""
        left = {p for p, end in ends.items() if end > starts[p]}
        consumer = self._open(isolation, {p: starts[p] for p in sorted(left)})
        try:
            while left and time.monotonic() < self._deadline:
                batch = consumer.poll(0.2)
                if len(batch.rows):
                    log.append(batch.rows)
                if batch.effects is not None and len(batch.effects):
                    effects.append(batch.effects)
                # The end-of-partition mark alone tells: behind the last record may stand markers.
                left -= {p for p, end in batch.ends.items() if end >= ends[p]}
        finally:
            consumer.close()
        return sorted(left)


role_class = FinalReader
