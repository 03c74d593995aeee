"""The final reader records how far it read each partition, and asks for the ends again (TRUST T1, T6)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.contracts import Batch, ConsumerSpec, Lane, Mode, OnAssignment, ProducerSpec, TopicToRead
from harness.ledger import reading
from harness.ledger.journal import Ledger
from harness.ledger.rows import DELIVERY
from harness.workers.counters import Board
from harness.workers.roles.final_reader import FinalReader, FinalReaderSpec


@dataclass
class FakeLog:
    """Partitions of one topic: start, end and last stable offset of each, and changes while they are read."""

    bounds: dict[int, tuple[int, int, int]]
    later: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # bounds after the first poll
    silent: set[int] = field(default_factory=set)  # partitions without answers
    dies: bool = False  # the broker, at the second poll
    polls: int = 0

    def open_consumer(self, settings: ConsumerSpec, on_assignment: OnAssignment) -> FakeConsumer:
        return FakeConsumer(self, settings)

    def open_producer(self, settings: ProducerSpec) -> Any:
        raise AssertionError("a reader produces nothing")


class FakeConsumer:
    def __init__(self, log: FakeLog, spec: ConsumerSpec) -> None:
        self._log, self._limit = log, 1 if spec.isolation == "read_uncommitted" else 2
        self._at = dict(spec.assign or {})

    def bounds(self, partition: int, timeout_s: float) -> tuple[int, int]:
        bounds = self._log.bounds[partition]
        return bounds[0], bounds[self._limit]

    def poll(self, timeout_s: float, at_most: int = 1000) -> Batch:
        self._log.polls += 1
        if self._log.dies and self._log.polls > 1:
            raise ConnectionError("gone")
        places = [
            (p, offset)
            for p in sorted(self._at.keys() - self._log.silent)
            for offset in range(self._at[p], self._log.bounds[p][self._limit])
        ]
        rows = np.zeros(len(places), dtype=DELIVERY)
        rows["partition"], rows["offset"] = [p for p, _ in places], [offset for _, offset in places]
        self._at |= {p: offset + 1 for p, offset in places}
        ends = {p: at for p, at in self._at.items() if p not in self._log.silent}
        self._log.bounds |= self._log.later
        if not places:
            time.sleep(0.01)
        return Batch(rows, {p: self._at[p] for p, _ in places}, ends, [])

    def close(self) -> None: ...


def read(log: FakeLog, folder: Path, limit_s: float = 5.0) -> list[Mapping[str, Any]]:
    """Return the reader's events, even if it failed."""
    spec = FinalReaderSpec(
        name="final-reader", run=1, mode=Mode.EXACTLY_ONCE, lane=Lane.CONTROL, limit_s=limit_s,
        topics=(TopicToRead("orders", len(log.bounds)),), bounds_every_s=0.0, open_limit_s=0.0,
    )  # fmt: skip
    with Ledger(folder, "final-reader") as journals:
        try:
            FinalReader(spec, Board(folder / "board")).work(log, journals, lambda: False)  # type: ignore[arg-type]
        except ConnectionError:
            assert log.dies
    return list(reading.read_events(folder / "final-reader.events"))


def readings(events: list[Mapping[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (e["isolation"], e["partition"]): (e["reached"], e["until"])
        for e in events
        if e["event"] == "reading"
    }


def test_each_partition_is_read_to_the_end_of_its_isolation(tmp_path: Path) -> None:
    events = read(FakeLog({0: (2, 9, 7), 1: (0, 0, 0)}), tmp_path)
    assert readings(events) == {
        ("read_uncommitted", 0): (9, 9), ("read_uncommitted", 1): (0, 0),
        ("read_committed", 0): (7, 7), ("read_committed", 1): (0, 0),
    }  # fmt: skip
    begins = next(e for e in events if e["event"] != "opened")
    assert (begins["event"], begins["partitions"]) == ("reading_begins", [2])
    assert [(e["isolation"], e["complete"]) for e in events if e["event"] == "read"] == [
        ("read_uncommitted", True),
        ("read_committed", True),
    ]


def test_records_appended_during_the_reading_are_read_too(tmp_path: Path) -> None:
    """The end that counts was asked for after the reading began."""
    events = read(FakeLog({0: (0, 5, 5)}, later={0: (0, 8, 8)}), tmp_path)
    assert readings(events) == {("read_uncommitted", 0): (8, 8), ("read_committed", 0): (8, 8)}
    rows, _ = reading.read_deliveries(tmp_path / "final-reader.read_uncommitted.log")
    assert rows["offset"].tolist() == list(range(8))


def test_a_start_that_moves_is_recorded(tmp_path: Path) -> None:
    events = read(FakeLog({0: (0, 5, 5)}, later={0: (3, 5, 5)}), tmp_path)
    starts = [(e["when"], e["start"]) for e in events if e["event"] == "bounds"]
    assert starts[0] == ("before", 0)
    assert ("after", 3) in starts


def test_a_reader_out_of_time_records_where_it_stopped(tmp_path: Path) -> None:
    events = read(FakeLog({0: (0, 5, 5), 1: (0, 4, 4)}, silent={1}), tmp_path, limit_s=0.3)
    assert readings(events)["read_uncommitted", 0] == (5, 5)
    assert readings(events)["read_uncommitted", 1] == (0, 4)
    assert [e["complete"] for e in events if e["event"] == "read"] == [False, False]


def test_a_reader_that_dies_leaves_the_ends_of_its_finished_partitions(tmp_path: Path) -> None:
    events = read(FakeLog({0: (0, 5, 5), 1: (0, 4, 4)}, silent={1}, dies=True), tmp_path)
    assert readings(events) == {("read_uncommitted", 0): (5, 5)}
    assert not any(e["event"] == "read" for e in events)
