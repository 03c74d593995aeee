"""The history that generated run folders tell: its numbers, a row for each record, and the state of a generation.

In a round of 100 ms each of four sessions sends 1000 records in four batches, two of the sessions in one transaction a
round (every twentieth is aborted). In a partition the batches are in the order in which they were sent, then two commit
markers. A round can be read once its transactions have ended, so the group is given it in the next round, a poll a
partition, and commits after that. In the middle the group is rebalanced. Pieces of 32 rounds are made at a time, so memory
does not grow with the number of records.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.ledger.rundir import RunDir

ANOMALIES = (
    "lost", "expired", "late", "duplicated", "reordered", "key_reordered", "misplaced", "phantom", "corrupted",
    "offset_conflict", "undelivered", "redelivered", "skipped", "rewound", "overcommitted", "aborted_read",
    "premature_read", "torn",
)  # fmt: skip
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


@dataclass
class History:
    """A history on its way to a run folder: what was made so far, and what must be found in it."""

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
        self.polled = {"read_uncommitted": 0, "read_committed": 0}
        self.attempted: Counter[str] = Counter()  # rows of each file of attempts

    def _aborted(self, session: int, number: int) -> bool:
        # Not before the rebalance: plants there are at the last records that the group can read.
        return (number + 1) % 20 == ABORTED_TXNS[session] and number != self.middle - 1
