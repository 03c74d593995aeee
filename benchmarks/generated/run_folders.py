"""Run folders of any size, made with numpy: journals, events and manifest as the workers of a real run leave them.

benchmarks.generated.history says what happens in them, benchmarks.generated.plants which anomalies are planted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.generated.group import Group
from benchmarks.generated.history import (
    ACK_NS,
    ANOMALIES,
    BATCH_NS,
    BATCH_RECORDS,
    BATCHES,
    CODE,
    KEYED,
    KEYS,
    MARKERS,
    MS,
    PARTITIONS,
    PIECE_ROUNDS,
    ROUND_NS,
    ROUND_RECORDS,
    ROW,
    SESSIONS,
    START,
    TRANSACTIONAL,
    TXN_KEYED,
    Rows,
)
from benchmarks.generated.journals import Journals
from benchmarks.generated.plants import Plants
from harness.ledger.rundir import RunDir

SMALLEST = 10_000  # records: fewer do not have room for the plants


@dataclass
class Made:
    """A run folder and the anomalies that must be found in it."""

    run: RunDir
    records: int  # attempts
    expected: dict[str, int]


def generate(
    folder: Path,
    records: int,
    *,
    plants: int = 7,
    base_offset: int = 0,
    seed: int = 1,
    scenario: str = "bench",
) -> Made:
    """Write `folder/<scenario>/made`; `plants` of each kind, 0: a clean run."""
    if records < SMALLEST:
        raise ValueError(f"{records} records: at least {SMALLEST} are needed")
    return Generation(new_run(folder, scenario), records, plants, base_offset, seed).all()


def new_run(folder: Path, scenario: str) -> RunDir:
    """An empty run folder, `folder/<scenario>/made`."""
    run = RunDir((folder / scenario / "made").resolve())
    run.ledger.mkdir(parents=True)
    run.logs.mkdir()
    return run


@dataclass
class Generation(Journals, Plants, Group):
    """The making of one run folder, piece by piece."""

    def all(self) -> Made:
        self._begin()
        starts = range(0, self.rounds, PIECE_ROUNDS)
        whole = max(1, self.rounds // PIECE_ROUNDS)  # a last piece that is short may lack room for plants
        for number, first in enumerate(starts):
            copies = [c for c in range(self.plants) if c * whole // self.plants == number]
            self._piece(first, min(first + PIECE_ROUNDS, self.rounds), copies)
        self._end()
        for file in self.files.values():
            file.close()
        self.expected["torn"] = len(self.torn)
        return Made(self.run, self.records, {name: self.expected[name] for name in ANOMALIES})

    def _piece(self, first: int, stop: int, copies: list[int]) -> None:
        rows = self._sent(first, stop)
        rows = self._planted(rows, first, stop, copies)
        self._place(rows, first, stop)
        self._expire_and_delay(rows, first, stop)
        self._write_attempts(rows)
        self._damage(rows)
        given = self._given(rows, first, stop)
        self._write_deliveries(rows, given)
        self._write_log(rows)
        self._write_transactions(first, stop)
        self._write_commits(rows, given, first, stop)

    def _sent(self, first: int, stop: int) -> Rows:
        """Return the messages of the sessions in these rounds, in the order of the log."""
        parts = []
        for session in SESSIONS:
            seq = np.arange(first * ROUND_RECORDS, min(stop * ROUND_RECORDS, self.each))
            rows = np.zeros(len(seq), dtype=ROW)
            rows["session"], rows["seq"] = session, seq
            rows["round"], in_round = seq // ROUND_RECORDS, seq % ROUND_RECORDS
            rows["batch"] = in_round // BATCH_RECORDS
            if session in (KEYED, TXN_KEYED):
                rows["key"] = self.rng.integers(0, KEYS, len(seq))
                rows["partition"], rows["intended"] = rows["key"] % PARTITIONS, -1
            else:
                rows["key"], rows["partition"] = -1, seq % PARTITIONS
                rows["intended"] = rows["partition"]
            began = START + rows["round"] * ROUND_NS + rows["batch"] * BATCH_NS
            rows["t"] = began + 1 * MS + in_round % BATCH_RECORDS * 60_000 + session * 5_000
            rows["t_acked"] = began + ACK_NS + session * MS + rows["partition"] * 50_000
            rows["owed"] = True
            if session in TRANSACTIONAL:
                rows["txn"] = rows["round"] + 1
                kept = np.array([not self._aborted(session, number) for number in range(first, stop)])
                rows["owed"] = kept[rows["round"] - first]
            parts.append(rows)
        rows = np.concatenate(parts)
        for name in ("first", "in_log"):
            rows[name] = True
        rows["in_committed"] = rows["owed"]
        place = ((rows["partition"] * self.rounds + rows["round"]) * BATCHES + rows["batch"]) * 8
        return rows[np.argsort(place + rows["session"], kind="stable")]

    def _place(self, rows: Rows, first: int, stop: int) -> None:
        """Offsets: one after the other, with the markers of each round."""
        edges = np.searchsorted(rows["partition"], np.arange(PARTITIONS + 1))
        rank = np.arange(len(rows)) - edges[rows["partition"]]
        rows["offset"] = self.base[rows["partition"]] + rank + MARKERS * (rows["round"] - first)
        rows["acked_offset"] = rows["offset"]
        conflict = np.flatnonzero(rows["plant"] == CODE["offset_conflict"])
        rows["acked_offset"][conflict] = rows["offset"][conflict + 1]
        self.base += np.diff(edges) + MARKERS * (stop - first)
        self.stable = self.base.copy()
