"""Run folders of any size, made with numpy: journals, events and manifest as the workers of a real run leave them.

The history: in a round of 100 ms each of four sessions sends 1000 records in four batches, two of
the sessions in one transaction a round (every twentieth is aborted). In a partition the batches are in the order
in which they were sent, then two commit markers. A round can be read once its transactions have ended, so the group is
given it in the next round, a poll a partition, and commits after that. In the middle the group is rebalanced. Pieces of
32 rounds are made at a time, so memory does not grow with the number of records.

Anomalies are planted at places far enough from each other that each one is found by itself; `Made.expected` says
how many of each kind docs/anomalies.md calls for, anomalies that follow from another one included.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from harness.contracts import Mode, Outcome, Verdict
from harness.ledger import journal
from harness.ledger.message import (
    ABORT_INTENDED,
    BAD_HEADER,
    BAD_KEY,
    BAD_PAYLOAD,
    BAD_TIMESTAMP,
    FOREIGN_RUN,
)
from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.screen.summaries import CONCURRENT_NS

ANOMALIES = (
    "lost", "expired", "late", "duplicated", "reordered", "key_reordered", "misplaced", "phantom", "corrupted",
    "offset_conflict", "undelivered", "redelivered", "skipped", "rewound", "overcommitted", "aborted_read",
    "premature_read", "torn",
)  # fmt: skip
SMALLEST = 10_000  # records: fewer do not have room for the plants

SESSIONS = (1, 2, 3, 4)
KEYLESS, KEYED, TXN_KEYLESS, TXN_KEYED = SESSIONS
TRANSACTIONAL = (TXN_KEYLESS, TXN_KEYED)
PARTITIONS = 6
KEYS = 60_000  # a multiple of the partitions: the partition of a key is its remainder
FIRST_PLANTED_KEY = 10_000_000
READERS = ("consumer-1.0", "consumer-2.0")
# Which partitions each reader has before and after the rebalance: two stay with each, two change hands.
OWNED = (((0, 1, 2), (3, 4, 5)), ((0, 1, 3), (2, 4, 5)))

ROUND_RECORDS = 1000  # of one session: a transaction
BATCHES = 4  # of a session in a round
BATCH_RECORDS = ROUND_RECORDS // BATCHES
MARKERS = 2  # at the end of a round in each partition: those of both transactional sessions
PIECE_ROUNDS = 32  # a multiple of FETCH_ROUNDS; with more, the rows leave the processor's cache
FETCH_ROUNDS = 8  # the final reader gets about 1 MB of a partition before it gets some of another
ABORTED_TXNS = {TXN_KEYLESS: 2, TXN_KEYED: 1}  # of every 20 transactions this one

MS = 1_000_000
START = 1_000_000 * MS
ROUND_NS, BATCH_NS = 100 * MS, 20 * MS
ACK_NS, END_NS, ENDED_NS = 22 * MS, 90 * MS, 94 * MS
POLL_NS, NEXT_POLL_NS, EARLY_POLL_NS, COMMIT_NS = 10 * MS, 20 * MS, 85 * MS, 80 * MS
REBALANCE_NS = 92 * MS

APART = 8  # rows between two plants
FROM_EDGE = 12  # rows from a plant to the first or last row of its partition's round: these have other plants

ROW = np.dtype([
    ("session", "<i8"), ("seq", "<i8"), ("txn", "<i8"), ("key", "<i8"), ("intended", "<i8"), ("partition", "<i8"),
    ("offset", "<i8"), ("acked_offset", "<i8"), ("round", "<i8"), ("batch", "<i8"), ("t", "<i8"), ("t_acked", "<i8"),
    ("flags", "u1"),
    ("first", "?"),  # the place in the ack: not a copy, not a phantom
    ("owed", "?"),  # not of an aborted transaction
    ("in_log", "?"),
    ("in_committed", "?"),
    ("readable", "?"),  # the group is given it
    ("plant", "u1"),  # number of its anomaly + 1
    ("copy", "u1"),
])  # fmt: skip
Rows = npt.NDArray[np.void]
Ints = npt.NDArray[np.int64]
CODE = {name: number for number, name in enumerate(ANOMALIES, start=1)}


@dataclass
class Made:
    """A run folder and the anomalies that must be found in it."""

    run: RunDir
    records: int  # attempts
    expected: dict[str, int]


@dataclass
class Given:
    """Deliveries of a piece, in order of partitions and of what was given: row number, time, reader."""

    row: Ints
    t: Ints
    reader: Ints

    def kept(self, keep: npt.NDArray[np.bool_] | Ints) -> Given:
        return Given(self.row[keep], self.t[keep], self.reader[keep])

    def with_more(self, after: Ints, more: Given) -> Given:
        """Add more deliveries, each right after the one whose number is in `after` (-1: before all)."""
        order = np.argsort(np.r_[np.arange(len(self.row)) * 2, after * 2 + 1], kind="stable")
        return Given(
            np.r_[self.row, more.row][order], np.r_[self.t, more.t][order], np.r_[self.reader, more.reader][order]
        )  # fmt: skip


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
class Generation:
    run: RunDir
    records: int
    plants: int
    base_offset: int
    seed: int
    expected: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.each = self.records // len(SESSIONS)  # records of a session
        self.records = self.each * len(SESSIONS)
        self.rounds = -(-self.each // ROUND_RECORDS)
        if 0 < self.each % ROUND_RECORDS < ROUND_RECORDS // 4:
            raise ValueError(
                f"{self.records} records: the last round would have no room for what is planted at the end"
            )
        # Plants at the rebalance need the round before it in the same piece.
        self.middle = self.rounds // 2 + (self.rounds // 2 % PIECE_ROUNDS == 0)
        self.rng = np.random.default_rng(self.seed)
        self.base = np.full(PARTITIONS, self.base_offset, dtype=np.int64)
        self.start, self.stable = self.base.copy(), self.base.copy()
        self.end_t = START + (self.rounds + 2) * ROUND_NS
        self.torn: set[tuple[int, int]] = set()
        self.files: dict[str, IO[bytes]] = {}
        self.polled = {"read_uncommitted": 0, "read_committed": 0}
        self.lines: Counter[str] = Counter()  # events of each writer
        self.attempted: Counter[str] = Counter()  # rows of each file of attempts

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

    # --- a piece ---

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

    def _aborted(self, session: int, number: int) -> bool:
        # Not before the rebalance: plants there are at the last records that the group can read.
        return (number + 1) % 20 == ABORTED_TXNS[session] and number != self.middle - 1

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

    # --- plants in the log ---

    def _planted(self, rows: Rows, first: int, stop: int, copies: list[int]) -> Rows:
        """Choose and mark the places of all plants of a piece, and rearrange its rows for those that are about order."""
        if not copies:
            return rows
        sites = _Sites(rows, self.rng)
        moved = np.arange(len(rows)) * 2  # places; an odd one is right after the even one before it
        more: list[tuple[int, Rows]] = []
        session, batch, committed = rows["session"], rows["batch"], rows["owed"]
        plain = session == KEYLESS
        run_of_three = plain & np.roll(plain, 1) & np.roll(plain, 2) & np.roll(plain, -1)
        for copy in copies:
            self._choose_polls(rows, sites, copy)
        for copy in copies:
            self._plant_keys(rows, sites, moved, copy)
            for name in ("lost", "corrupted", "misplaced", "offset_conflict"):
                if name == "misplaced" and copy % 2:
                    continue  # a key in two partitions instead
                sites.take(plain, name, copy)
                self.expected[name] += 1
            twin = sites.take(plain, "duplicated", copy)
            more.append((2 * twin + 7, rows[[twin]]))
            more[-1][1]["first"], more[-1][1]["plant"] = False, 0
            self.expected["duplicated"] += 1
            near = sites.take(plain, "phantom", copy)
            stranger = rows[[near]]
            stranger["seq"], stranger["first"], stranger["plant"] = self.each + 1000 + copy, False, 0
            stranger["flags"] = FOREIGN_RUN if copy % 2 else 0
            more.append((2 * near + 1, stranger))
            self.expected["phantom"] += 1
            behind = sites.take(run_of_three & (batch == np.roll(batch, -1)), "reordered", copy)
            moved[behind], moved[behind + 1] = moved[behind + 1], moved[behind]
            self.expected["reordered"] += 1
            sites.take(run_of_three, "rewound", copy)
            self.expected["rewound"] += 1
            self.expected["redelivered"] += 3
            # Of the records that one reader passed over, another reader gets two later: no more than one of a partition,
            # or it would have passed over the records between them.
            elsewhere = {0: 0, 1: 4}.get(copy)
            sites.take(
                plain if elsewhere is None else plain & (rows["partition"] == elsewhere), "skipped", copy
            )
            self.expected["skipped"] += 1
            self.expected["undelivered"] += elsewhere is None
            sites.take(~committed, "aborted_read", copy)
            self.expected["aborted_read"] += 1
            gone = sites.take(committed & (session == TRANSACTIONAL[copy % 2]), "torn", copy)
            self.torn.add((int(session[gone]), int(rows["txn"][gone])))
            self.expected["lost"] += 1
        intended = rows["plant"] == CODE["misplaced"]
        rows["intended"][intended] = (rows["intended"][intended] + 1) % PARTITIONS
        absent = np.isin(rows["plant"], (CODE["lost"], CODE["torn"]))
        rows["in_log"][absent] = rows["in_committed"][absent] = False
        places = np.r_[moved, [place for place, _ in more]]
        return np.concatenate([rows, *(extra for _, extra in more)])[np.argsort(places, kind="stable")]

    def _choose_polls(self, rows: Rows, sites: _Sites, copy: int) -> None:
        """Choose whole polls: one before the end of one of its transactions, and one that is committed before it is given."""
        early = (rows["round"] != self.middle) & (rows["session"] == TXN_KEYLESS) & rows["owed"]
        sites.take_poll(early, "premature_read", copy)
        self.expected["premature_read"] += 1
        sites.take_poll((rows["round"] > 0) & (rows["session"] == KEYLESS), "overcommitted", copy)
        self.expected["overcommitted"] += 1

    def _plant_keys(self, rows: Rows, sites: _Sites, moved: Ints, copy: int) -> None:
        """Plant pairs of records with the same new key, in the opposite order or in two partitions."""
        session, batch, partition = rows["session"], rows["batch"], rows["partition"]
        key, where = FIRST_PLANTED_KEY + 2 * copy, rows["round"]
        whole = np.isin(
            where, np.unique(where[(batch == BATCHES - 1) & (session == TXN_KEYED) & rows["owed"]])
        )
        if copy % 2:
            # In two partitions of one reader; partition 0 is polled before partition 1, so the group gets the first
            # pair as it was sent (misplaced only), the second one the other way round.
            for first, second in ((0, 1), (1, 0)):
                sent = sites.take(whole & (session == KEYED) & (batch == 1) & (partition == first))
                later = (session == KEYED) & (batch == BATCHES - 1) & (partition == second)
                rows["key"][[sent, sites.take(later & (where == where[sent]))]] = key
                key += 1
                self.expected["misplaced"] += 1
            self.expected["key_reordered"] += 1
            return
        # The first one was acked long before the second was sent, and is right behind it: behind later ones
        # of its own session too.
        t, need = rows["t"], CONCURRENT_NS + MS
        last_sent = int(t[session == TXN_KEYED].max())
        early = (session == KEYED) & (batch == 0) & (rows["t_acked"] + need + 8 * MS < last_sent)
        sent = sites.take(early)
        after = int(rows["t_acked"][sent]) + need
        later = (
            (session == TXN_KEYED) & (partition == partition[sent]) & (t >= after) & (t < after + ROUND_NS)
        )
        before = sites.take(later)
        rows["key"][[sent, before]] = key
        moved[sent], rows["round"][sent] = 2 * before + 1, where[before]
        self.expected["key_reordered"] += 1
        self.expected["reordered"] += 1

    def _expire_and_delay(self, rows: Rows, first: int, stop: int) -> None:
        """The group gets each readable record; the log has lost its start in one partition, and its end is not stable."""
        rows["readable"] = rows["in_committed"]
        if self.plants and first == 0:
            start = np.flatnonzero(rows["partition"] == 5)[: self.plants]
            rows["in_log"][start] = rows["in_committed"][start] = False  # and readable when the group read it
            self.start[5] = rows["offset"][start[-1]] + 1
            self.expected["expired"] += int(np.count_nonzero(rows["owed"][start]))
        if self.plants and stop == self.rounds:
            end = np.flatnonzero(rows["partition"] == 4)[-self.plants :]
            self.expected["late"] += int(np.count_nonzero(rows["owed"][end]))
            rows["in_committed"][end] = rows["readable"][end] = False
            self.stable[4] = rows["offset"][end[0]]

    def _damage(self, rows: Rows) -> None:
        """Damage records after their attempts have been written."""
        harmed = np.flatnonzero(rows["plant"] == CODE["corrupted"])
        for row, copy in zip(harmed.tolist(), rows["copy"][harmed].tolist(), strict=True):
            flag = (BAD_PAYLOAD, BAD_KEY, BAD_HEADER, BAD_TIMESTAMP, 0)[copy % 5]
            rows["flags"][row] = flag
            if flag == BAD_PAYLOAD:
                for name in ("session", "seq", "txn", "key", "intended"):
                    rows[name][row] = 0
            elif flag == 0:
                rows["key"][row] = FIRST_PLANTED_KEY - 1

    # --- the group ---

    def _owner(self, partition: int, number: int) -> int:
        return int(partition in OWNED[number >= self.middle][1])

    def _given(self, rows: Rows, first: int, stop: int) -> Given:
        owner = np.array([[self._owner(p, r) for p in range(PARTITIONS)] for r in range(first, stop)])
        turn = np.array([
            [OWNED[r >= self.middle][self._owner(p, r)].index(p) for p in range(PARTITIONS)] for r in range(first, stop)
        ])  # fmt: skip
        row = np.flatnonzero(rows["readable"] | (rows["plant"] == CODE["aborted_read"]))
        cell = rows["round"][row] - first, rows["partition"][row]
        t = START + (rows["round"][row] + 1) * ROUND_NS + POLL_NS + turn[cell] * NEXT_POLL_NS
        given = Given(row, t.astype(np.int64), owner[cell].astype(np.int64))
        if not self.plants:
            return given
        self._give_early(rows, given)
        given = self._give_again(rows, given)
        given = self._give_elsewhere(rows, given)
        if first <= self.middle < stop:
            given = self._rebalance(rows, given)
        return given

    def _give_early(self, rows: Rows, given: Given) -> None:
        """A poll before the transactions ended: all records before one of theirs, and that record."""
        for mark in np.flatnonzero(rows["plant"] == CODE["premature_read"]).tolist():
            number, partition = rows["round"][mark], rows["partition"][mark]
            at = rows[given.row]
            early = (at["round"] == number) & (at["partition"] == partition) & (given.row <= mark)
            given.t[early] = START + number * ROUND_NS + EARLY_POLL_NS

    def _give_again(self, rows: Rows, given: Given) -> Given:
        """A reader goes back by three records: within a poll, or in a separate poll."""
        for mark in np.flatnonzero(rows["plant"] == CODE["rewound"]).tolist():
            at = int(np.flatnonzero(given.row == mark)[0])
            again = np.arange(at - 2, at + 1)
            later = MS * (int(rows["copy"][mark]) % 2)
            if later:
                rest = given.row > mark
                rest &= (rows["partition"][given.row] == rows["partition"][mark]) & (given.t == given.t[at])
                given.t[rest] += later
            t = np.full(3, given.t[at] + later)
            given = given.with_more(np.full(3, at), Given(given.row[again], t, given.reader[again]))
        return given

    def _give_elsewhere(self, rows: Rows, given: Given) -> Given:
        """Let readers pass over records; two of them are given to the other reader later."""
        passed_over = rows["plant"][given.row] == CODE["skipped"]
        other = passed_over & (rows["copy"][given.row] < 2)
        given.reader[other] = 1 - given.reader[other]
        given.t[other] = START + (rows["round"][given.row[other]] + 1) * ROUND_NS + 75 * MS
        return given.kept(~passed_over | other)

    def _rebalance(self, rows: Rows, given: Given) -> Given:
        """Partitions 0 and 1 go on too late, the new readers of 2 and 3 and the old ones of 4 and 5 too early."""
        keep = np.ones(len(given.row), dtype=bool)
        again: list[int] = []
        resumed: list[int] = []  # the first delivery after the rebalance, for each of `again`
        partition_of, round_of = rows["partition"][given.row], rows["round"][given.row]
        half = self.plants // 2
        for partition, count in enumerate((self.plants - half, half, self.plants - half, half, 2, 2)):
            mine = partition_of == partition
            before = np.flatnonzero(mine & (round_of == self.middle - 1))
            last = before[len(before) - count :].tolist()
            if partition < 2:
                keep[last] = False
                self.expected["undelivered"] += count
            else:
                again += last
                resumed += [int(np.flatnonzero(mine & (round_of == self.middle))[0])] * count
                self.expected["redelivered"] += count
                self.expected["rewound"] += partition >= 4  # with the excuse `rebalance`
        more = Given(given.row[again], given.t[resumed], given.reader[resumed])
        # Right before the first one after the rebalance: after all that came before it.
        kept = np.cumsum(keep) - 1
        return given.kept(keep).with_more(kept[resumed] - 1, more)

    # --- writing ---

    def _file(self, name: str) -> IO[bytes]:
        if name not in self.files:
            self.files[name] = (self.run.ledger / name).open("wb")
        return self.files[name]

    def _store_attempts(self, session: int, rows: Rows) -> None:
        name = f"producer-{session}.0.{session}.attempts"
        self._file(name).write(rows.tobytes())
        self.attempted[name] += len(rows)

    def _store_deliveries(self, reader: int, name: str, rows: Rows) -> None:
        self._file(f"{name}.deliveries").write(rows.tobytes())

    def _store_log(self, readings: dict[str, Rows]) -> None:
        for isolation, rows in readings.items():
            self._file(f"final-reader.{isolation}.log").write(rows.tobytes())

    def _event(self, t: int, writer: str, kind: str, **fields: Any) -> None:
        line = json.dumps({"t": int(t), "event": kind, "writer": writer, **fields}) + "\n"
        self._file(f"{writer}.events").write(line.encode())
        self.lines[writer] += 1

    def _write_attempts(self, rows: Rows) -> None:
        for session in SESSIONS:
            mine = rows[(rows["session"] == session) & rows["first"]]
            mine = mine[np.argsort(mine["seq"])]
            made = np.zeros(len(mine), dtype=journal.ATTEMPT)
            made["t_attempt"], made["t_outcome"] = mine["t"], mine["t_acked"]
            for name in ("key", "txn"):
                made[name] = mine[name]
            made["partition"], made["told_partition"] = mine["intended"], mine["partition"]
            made["offset"], made["outcome"] = mine["acked_offset"], Outcome.ACKED
            made["flags"] = np.where(mine["owed"], 0, ABORT_INTENDED)
            made["attempt_mark"], made["outcome_mark"] = journal.ATTEMPT_MARK, journal.OUTCOME_MARK
            self._store_attempts(session, made)

    def _records(self, rows: Rows, t: Ints) -> npt.NDArray[np.void]:
        made = np.zeros(len(rows), dtype=journal.DELIVERY)
        for name in ("offset", "seq", "session", "txn", "key", "partition", "flags"):
            made[name] = rows[name]
        made["t"], made["intended_partition"] = t, rows["intended"]
        made["intent"] = np.where(rows["owed"], 0, ABORT_INTENDED)
        return made

    def _write_deliveries(self, rows: Rows, given: Given) -> None:
        for reader, name in enumerate(READERS):
            mine = given.kept(given.reader == reader)
            mine = mine.kept(np.argsort(mine.t, kind="stable"))
            self._store_deliveries(reader, name, self._records(rows[mine.row], mine.t))

    def _write_log(self, rows: Rows) -> None:
        fetched = rows[np.argsort(rows["round"] // FETCH_ROUNDS, kind="stable")]
        readings = {}
        for isolation, found in (
            ("read_uncommitted", fetched[fetched["in_log"]]),
            ("read_committed", fetched[fetched["in_committed"]]),
        ):
            polls = (self.polled[isolation] + np.arange(len(found))) // 1000
            self.polled[isolation] += len(found)
            readings[isolation] = self._records(found, self.end_t + polls * MS)
        self._store_log(readings)

    def _write_transactions(self, first: int, stop: int) -> None:
        for session in TRANSACTIONAL:
            for number in range(first, stop):
                did = "abort" if self._aborted(session, number) else "commit"
                began, writer = START + number * ROUND_NS, f"producer-{session}.0"
                facts = {"session": session, "txn": number + 1, "intent": did}
                self._event(began, writer, "txn", step="begin", **facts)
                self._event(began + END_NS, writer, "txn", step="end", **facts)
                self._event(
                    began + ENDED_NS,
                    writer,
                    "txn",
                    step="ended",
                    did=did,
                    outcome=int(Outcome.ACKED),
                    **facts,
                )

    def _write_commits(self, rows: Rows, given: Given, first: int, stop: int) -> None:
        """Write the commits of each reader after a round: up to what it was given, and the planted ones beyond."""
        reached = np.full((stop - first, PARTITIONS), -1, dtype=np.int64)
        at = rows["round"][given.row] - first, rows["partition"][given.row]
        np.maximum.at(reached, at, rows["offset"][given.row] + 1)
        marks = rows[rows["plant"] == CODE["overcommitted"]]
        too_early = set(zip(marks["round"].tolist(), marks["partition"].tolist(), strict=True))
        for number in range(first, stop):
            if number == self.middle:
                self._record_rebalance()
            polled = START + (number + 1) * ROUND_NS
            for reader, partitions in enumerate(OWNED[number >= self.middle]):
                offsets = {
                    p: int(reached[number - first, p]) for p in partitions if reached[number - first, p] >= 0
                }
                for partition in partitions:
                    if (number, partition) in too_early:
                        self._commit(polled + 5 * MS, reader, {partition: offsets[partition]})
                self._commit(polled + COMMIT_NS, reader, offsets)

    def _commit(self, t: int, reader: int, offsets: dict[int, int]) -> None:
        if offsets:
            outcome = int(Outcome.ACKED)
            self._event(
                t,
                READERS[reader],
                "commit",
                reader=READERS[reader],
                offsets=offsets,
                outcome=outcome,
                error="",
            )

    def _assign(self, t: int, how: str, owned: tuple[tuple[int, ...], ...]) -> None:
        for name, partitions in zip(READERS, owned, strict=True):
            self._event(t, name, "assignment", reader=name, how=how, partitions=list(partitions))

    def _record_rebalance(self) -> None:
        t = START + self.middle * ROUND_NS + REBALANCE_NS
        self._assign(t, "revoked", OWNED[0])
        self._assign(t + 3 * MS, "assigned", OWNED[1])

    def _begin(self) -> None:
        self._event(START - 90 * MS, "harness", "step", step="workers")
        for session in SESSIONS:
            writer = f"producer-{session}"
            self._event(
                START - 80 * MS, f"{writer}.0", "session", session=session, producer=writer, incarnation=0,
                mode=Mode.EXACTLY_ONCE, idempotent=True, retries=True, in_flight=5, acks="all",
                transactional_id=writer if session in TRANSACTIONAL else "",
            )  # fmt: skip
        self._assign(START - 50 * MS, "assigned", OWNED[0])
        for window in range(2):
            opened = START + (window + 1) * self.rounds * ROUND_NS // 3
            life: dict[str, Any] = {
                "window": window,
                "fault": "kill",
                "target": "leader",
                "nodes": ["broker-1"],
            }
            self._event(opened, "injector", "window", step="open", **life)
            self._event(opened + 20 * MS, "injector", "window", step="bite", bit=True, proof="leader changed",
                        measured={"ms": 12.5}, **life)  # fmt: skip
            self._event(opened + 50 * MS, "injector", "window", step="heal", **life)
            self._event(
                opened + 60 * MS,
                "injector",
                "window",
                step="healed",
                healed=True,
                proof="all in sync",
                **life,
            )

    def _pad_attempts(self) -> None:
        """Extend files of attempts to whole regions, as workers allocate them."""
        for session in SESSIONS:
            file = self._file(f"producer-{session}.0.{session}.attempts")
            file.flush()
            os.truncate(file.fileno(), -(-file.tell() // journal.REGION_BYTES) * journal.REGION_BYTES)

    def _end(self) -> None:
        self._event(self.end_t, "harness", "step", step="stopped")
        ends = {partition: int(self.base[partition]) for partition in range(PARTITIONS)}
        self._event(self.end_t, "harness", "drain", complete=True, detail="", topic=0, ends=ends)
        self._event(self.end_t, "final-reader", "reading_begins", partitions=[PARTITIONS])
        for partition in range(PARTITIONS):
            bounds = {"start": self.start, "end": self.base, "stable": self.stable}
            fields = {name: int(offsets[partition]) for name, offsets in bounds.items()}
            self._event(self.end_t, "final-reader", "bounds", when="before", partition=partition, **fields)
        for isolation, limit in (("read_uncommitted", self.base), ("read_committed", self.stable)):
            t = self.end_t + self.polled[isolation] // 1000 * MS
            for partition in range(PARTITIONS):
                end = int(limit[partition])
                self._event(
                    t, "final-reader", "reading", isolation=isolation, partition=partition, reached=end, until=end
                )  # fmt: skip
            self._event(t, "final-reader", "read", isolation=isolation, complete=True, detail="")
        self._pad_attempts()
        self._close()
        write_json(self.run.manifest, self._manifest())

    def _close(self) -> None:
        """Write the closing event of each writer, with its numbers of rows and lines."""
        t = self.end_t + max(self.polled.values()) // 1000 * MS
        for writer in list(self.lines):
            rows = {
                name: self.attempted[name]
                if name.endswith(".attempts")
                else file.tell() // journal.DELIVERY.itemsize
                for name, file in self.files.items()
                if name.startswith(f"{writer}.") and not name.endswith(".events")
            }
            self._event(t, writer, "closed", rows=rows, lines=self.lines[writer] + 1)

    def _manifest(self) -> dict[str, Any]:
        scenario = {
            "name": self.run.path.parent.name, "mode": Mode.EXACTLY_ONCE, "guarantee": Mode.EXACTLY_ONCE,
            "judged_as": None, "expected": Verdict.VIOLATED if any(self.expected.values()) else Verdict.HELD, "control": False,
            "schedule": [{"fault": {"name": "kill"}}] * 2, "consumers": {"isolation": "read_committed"},
            "topic": {"partitions": PARTITIONS},
        }  # fmt: skip
        clock = {"monotonic_ns": START - 100 * MS, "wall": "2026-01-01T00:00:00+0000"}
        return {
            "version": journal.VERSION, "run_id": self.run.run_id, "scenario": scenario,
            "expected": scenario["expected"], "topic": "orders", "group": "orders-group", "clock": clock,
            "complete": True,
        }  # fmt: skip


class _Sites:
    """Places for plants in the rows of a piece: chosen at random, none near another or near the edge of a poll."""

    def __init__(self, rows: Rows, rng: np.random.Generator) -> None:
        self._rows, self._rng = rows, rng
        group = rows["partition"] * (int(rows["round"].max()) + 1) + rows["round"]
        self._starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        self._free = np.ones(len(rows), dtype=bool)
        for edge in (*self._starts.tolist(), len(rows)):
            self._free[max(edge - FROM_EDGE, 0) : edge + FROM_EDGE] = False
        self._polls_free = np.ones(len(rows), dtype=bool)

    def take(self, fitting: npt.NDArray[np.bool_], name: str | None = None, copy: int = 0) -> int:
        """Return one of the fitting rows, marked as the plant of this name."""
        return self._take(np.flatnonzero(fitting & self._free), name, copy)

    def take_poll(self, fitting: npt.NDArray[np.bool_], name: str, copy: int) -> int:
        """Return the first fitting row of a poll that has no plant of this kind yet."""
        rows = np.flatnonzero(fitting)
        poll = np.searchsorted(self._starts, rows, side="right")
        firsts = rows[np.unique(poll, return_index=True)[1]]
        return self._take(firsts[self._polls_free[firsts]], name, copy)

    def _take(self, candidates: Ints, name: str | None, copy: int) -> int:
        if not len(candidates):
            raise ValueError(f"no place is left to plant {name or 'a key'}: more records are needed")
        row = int(self._rng.choice(candidates))
        self._free[max(row - APART, 0) : row + APART + 1] = False
        self._polls_free[row] = False
        if name is not None:
            self._rows["plant"][row], self._rows["copy"][row] = CODE[name], copy
        return row
