"""Vectorised kernels that screen a ledger by blocks of 64 messages or positions. Pure numpy, no Spark in here.

A block is one row of summary: masks with one bit for each of its 64 items, counts, and hashes. Two sides that hold
the same items with the same contents have the same masks and counts, and their hashes cancel out (exclusive or),
whatever their order and wherever a file ends; so screening is a few bit operations, and only blocks that differ are
looked at record by record (harness.reconcile.closer_look). A difference may be innocent; an anomaly always makes a difference
(a hash of 64 bits would have to collide to hide one).

Every summary row has the columns of SUMMARY. Rows of one key (run, space, a, b) are merged by the aggregates named
there. What the columns mean depends on `space`; harness.reconcile.screen.kernels is the only writer and `weigh` the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from harness.ledger.transform import Transform
from harness.reconcile.arrays import Bools, Ints, looked_up
from harness.reconcile.screen.partition_owners import NOBODY, Ownership

if TYPE_CHECKING:
    from harness.reconcile.screen.observers import Observer

Summary = dict[str, Ints]

KEYS = ("run", "space", "a", "b")
MASKS = ("m0", "m1", "m2", "m3", "m4", "why")
SUMS, HASHES, HIGHEST = ("n0", "n1", "n2"), ("h0", "h1"), ("x",)
SUMMARY = (*KEYS, *MASKS, *SUMS, *HASHES, *HIGHEST)
BITS = 6  # 64 items a block

BUCKET_NS = 250_000_000  # of the timeline, unless the run is long
MOST_BUCKETS = 1 << 14  # of the timeline, about; the driver holds them all, so longer runs have wider ones
SLOT_NS = 10_000_000  # of the times at which acks came: gaps are known to 10 ms
KEY_SLOT_NS = 100_000_000  # of the times at which keyed records were sent and acked
CONCURRENT_NS = (
    2 * KEY_SLOT_NS
)  # an ack that precedes an attempt by this much lies in a slot before the last one
BIN = np.log(1.02)  # latencies are counted in bins two percent wide
LEAST_MS = 0.001


class Space(IntEnum):
    """What a and b of a summary row say, and its columns."""

    MESSAGE = (
        0  # session, seq block | m0 attempted, m1 owed, m2 logged, m3 promised, n0 log rows, n1 acked places
    )
    #              h0 contents sent against contents found, h1 places acked against places found, why: Why bits
    POSITION = 1  # place, offset block | m0 for the group to read, m1 passed by it, m2 logged, m3 delivered,
    #               m4 jumped over by a reader, n0 log rows, n1 deliveries,
    #               h0 contents to read against contents delivered, why: Why bits; h1 and n2 contents and records that
    #               observers had to be given against those that they were given (harness.reconcile.screen.observers)
    KEY = 2  # topic and key block, partition | m0 keys of the block that stand in this partition
    RUN_OF_ORDER = 3  # session and place, first offset | m0 last offset, m1 least seq, m2 highest seq, n0 1
    ACK_SLOTS = 4  # place, block of slots | m0 slots with an ack
    BUCKET = 5  # bucket, bin of latency (or ATTEMPTED, DELIVERED) | n0 how many, x longest latency in ns
    TOTAL = 6  # a Count | n0 how many, x as the Count says
    READING = 7  # reader and place, time of its first row | what one task saw of it: m0 and m1 first and last offset,
    #              m2 and m3 first and last generation, n0 1, n1 reader, n2 place
    GIVEN = 8  # place, number of a commit in order of time | x 1 + highest offset that the group was given by then
    BELOW = 9  # place, number of a commit in order of offset | x 1 + highest offset for the group to read below it
    KEY_ACKED = 10  # place, slot of time | x highest offset of a keyed record acked in it
    KEY_SENT = 11  # place, slot of time | x minus the lowest offset of a keyed record attempted in it
    EFFECT = 12  # place of an input, offset block | n0 effects that its passed inputs have to have, n1 effects found,
    #              h0 those against these
    OWNER = 13  # no rows: who owned a partition is asked of the events (harness.reconcile.screen.partition_owners)


ATTEMPTED_BIN, DELIVERED_BIN = -(1 << 30), -(1 << 30) + 1


class Count(IntEnum):
    ATTEMPTED = 0
    ACKED = 1
    REJECTED = 2
    UNKNOWN = 3
    PROGRESS_BEFORE = 4
    PROGRESS_AFTER = 5
    OWED = 6  # and in partitions that were read whole
    READ_IN_TXN = 7
    PLACED = 8  # in the log, with a partition that the sender named
    STRANGE = 9  # records that cannot say which message of this run they are
    FIRST_ATTEMPT = 10  # x: the negative of its time
    LAST_ACK = 11  # x: its time
    # Of merged blocks, before sound ones are let go:
    LOGGED = 12  # messages in the log
    LOG_ROWS = 13
    PASSED = 14  # positions that the group has passed
    DELIVERED = 15  # positions that the group was given
    DELIVERIES = 16
    KEYED = 17  # records in the log with a key, whose partition was left to the client
    CLAIMED = 18  # acks that told a place
    PROMISED = 19  # messages in the log that is owed
    STEPS = 20  # of readers, from one delivery to the next one of a partition
    REWOUND = 21  # those that go back
    LONG_JUMPS = 22  # those that jump over more blocks than were looked at
    COMMITS = 23  # acked commits of a partition
    NEVER_ACKED = 24  # messages that nobody acked and that are not in the log
    INPUTS = 25  # of a pipeline, that its group has passed
    EFFECTS = 26  # found in the log that is owed
    ASSIGNED = 27  # how often a partition was given to a member of the group


class Why(IntFlag):
    """Why a block is not sound. The first ones are seen in a record, the others when both sides are merged."""

    MISPLACED = 1
    READ_UNCOMMITTED = 2  # read although its transaction is not told to be committed
    OVERTAKEN = 4
    OPEN_TXN = 8  # what became of its transaction is for the readers to tell
    FLAGGED = 16
    MISSING = 32  # owed and not there, or to be read and not delivered
    NOBODYS = 64  # in the log and not attempted, or delivered and not to be read
    REPEATED = 128
    CONTENT = 256  # differs, or cannot be compared since the sides hold different items
    PLACE = 512  # likewise
    JUMPED = 1024  # a reader jumped over a record that it could read
    PREMATURE = 2048  # read before its transaction was asked to commit
    KEYS_CROSSED = 4096  # keyed records may stand in another order than they were sent
    OBSERVED = 8192  # an observer was given something else than the log holds


class Fate(IntEnum):
    """What the events tell of a transaction; OPEN ones are decided by what was read (E2)."""

    OPEN = 0
    COMMITTED = 1
    ABORTED = 2


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Commits:
    """Acked commits of one place in order of time, and their offsets in order."""

    t: Ints
    offset: Ints
    reader: Ints
    offsets_sorted: Ints


@dataclass(frozen=True)
class Facts:
    """What the kernels have to know of one run."""

    run: int
    zero_ns: int
    group_reads_committed: bool
    topic_unchanged: bool = True
    # Transactions as session << 32 | txn, sorted, and the Fate of each.
    transactions: Ints = field(default_factory=_none)
    fates: Ints = field(default_factory=_none)
    asked: Ints = field(
        default_factory=_none
    )  # when each was first asked to commit; 0 for one that was not, or is aborted
    # Producer sessions, sorted, and how many messages each attempted.
    sessions: Ints = field(default_factory=_none)
    attempted: Ints = field(default_factory=_none)
    commits: Mapping[int, Commits] = field(default_factory=dict)  # by place
    transform: Transform | None = None  # of a pipeline
    owned: Ownership = NOBODY
    observers: Mapping[int, Observer] = field(default_factory=dict)  # by the number of the reader
    bucket_ns: int = BUCKET_NS
    # By topic and 1 + partition, whether it was read whole; at 0 of a topic: all of it was. None: everything was.
    whole: npt.NDArray[np.bool_] | None = None

    def fate_of(self, session: Ints, txn: Ints) -> Ints:
        """The fate of each record's transaction; OPEN for one that no event tells of."""
        return looked_up(session << 32 | txn, self.transactions, self.fates, Fate.OPEN)

    def asked_at(self, session: Ints, txn: Ints) -> Ints:
        """When each record's transaction was asked to commit; 0 for one that was not."""
        return looked_up(session << 32 | txn, self.transactions, self.asked, 0)

    def was_read(self, topic: Ints, partition: Ints) -> Bools:
        """Whether what a message left in this partition (-1: in any of its topic) was read to the end (E11)."""
        if self.whole is None:
            return np.ones(len(topic), dtype=np.bool_)
        topics, width = self.whole.shape
        known = (topic < topics) & (partition >= -1) & (partition < width - 1)
        read: Bools = known & self.whole.ravel()[np.where(known, topic * width + partition + 1, 0)]
        return read

    def was_attempted(self, session: Ints, seq: Ints) -> Bools:
        """Whether the sender's journal has this message."""
        attempted: Bools = seq < looked_up(session, self.sessions, self.attempted, 0)
        return attempted


def bucket_ns(length_ns: int) -> int:
    """How wide a bucket of the timeline is, in a run of this length."""
    width = BUCKET_NS
    while length_ns > width * MOST_BUCKETS:
        width *= 2
    return width


def bit_of(index: Ints, where: Bools | None = None) -> Ints:
    """The bit of each item in the mask of its block; none where `where` is false."""
    bits = (np.uint64(1) << (index & 63).astype(np.uint64)).astype(np.int64)
    return bits if where is None else np.where(where, bits, 0)


def folded(run: int, space: Space, a: Ints, b: Ints, **columns: Ints) -> Summary:
    """Merge the rows of each key; columns that are not given are 0."""
    count = len(a)
    if count == 0:
        return {name: np.zeros(0, dtype=np.int64) for name in SUMMARY}
    order = _in_order(a, b)
    if order is not None:
        a, b = a[order], b[order]
    starts = np.flatnonzero(np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1])])
    out = {name: np.zeros(len(starts), dtype=np.int64) for name in SUMMARY}
    out["run"][:], out["space"][:], out["a"], out["b"] = run, space, a[starts], b[starts]
    for name, values in columns.items():
        values = values if order is None else values[order]
        out[name] = _MERGE[name].reduceat(values, starts)
    return out


def _in_order(a: Ints, b: Ints) -> Ints | None:
    """The order by a, then b; None if they are in order, as most batches of a ledger are."""
    if np.all((a[1:] > a[:-1]) | ((a[1:] == a[:-1]) & (b[1:] >= b[:-1]))):
        return None
    least_a, least_b = int(a.min()), int(b.min())
    width = int(b.max()) - least_b + 1
    if (int(a.max()) - least_a + 1) * width > 1 << 16:
        return np.lexsort((b, a))
    # Numbers of 16 bits are sorted by counting them: three times as fast.
    return np.argsort(((a - least_a) * width + (b - least_b)).astype(np.uint16), kind="stable")


_MERGE: Mapping[str, Any] = {
    **dict.fromkeys(MASKS, np.bitwise_or),
    **dict.fromkeys(SUMS, np.add),
    **dict.fromkeys(HASHES, np.bitwise_xor),
    **dict.fromkeys(HIGHEST, np.maximum),
}


def merged(s: Summary) -> Summary:
    """All rows of one key as one, as Spark merges them."""
    if not len(s["run"]):
        return s
    order = np.lexsort([s[name] for name in reversed(KEYS)])
    keys = np.stack([s[name][order] for name in KEYS])
    starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    found = {name: s[name][order][starts] for name in KEYS}
    return found | {name: reduce.reduceat(s[name][order], starts) for name, reduce in _MERGE.items()}


def why_where(where: Bools, why: Why) -> Ints:
    return np.where(where, np.int64(why), np.int64(0))


def total(run: int, count: Count, n: int, x: int = 0) -> Summary:
    one = np.ones(1, dtype=np.int64)
    return folded(run, Space.TOTAL, one * count, one * 0, n0=one * n, x=one * x)


def joined(parts: list[Summary]) -> Summary:
    return {name: np.concatenate([part[name] for part in parts]) for name in SUMMARY}


# --- weighing -------------------------------------------------------------------------------------


def weigh(s: Summary) -> Ints:
    """Why each merged row cannot be taken as sound, as bits of Why; 0: it is sound, or not a block.

    Hashes of two sides can be compared only when both hold the same items, each once.
    """
    m0, m1, m2, m3 = (s[name] for name in MASKS[:4])
    logged, delivered = _bits(m2), _bits(m3)
    missing, extra_rows = (m1 & ~m3) != 0, s["n0"] != logged
    differ = (m0 != m2) | extra_rows
    claimed = s["n1"] > 0  # with acks=0 nobody told a place
    message = (
        why_where(missing, Why.MISSING)
        | why_where((m2 & ~m0) != 0, Why.NOBODYS)
        | why_where(extra_rows, Why.REPEATED)
        | why_where(differ | (s["h0"] != 0), Why.CONTENT)
        | why_where(claimed & (differ | (s["h1"] != 0)), Why.PLACE)
    )
    again = s["n1"] != delivered
    apart = (m0 != m3) | again | extra_rows
    position = (
        why_where(missing, Why.MISSING)
        | why_where((m3 & ~m0) != 0, Why.NOBODYS)
        | why_where(again, Why.REPEATED)
        | why_where(extra_rows, Why.PLACE)
        | why_where(apart | (s["h0"] != 0), Why.CONTENT)
        | why_where(jumped_over(s) != 0, Why.JUMPED)
        | why_where(_observed(s), Why.OBSERVED)
    )
    space = s["space"]
    effect = why_where(s["n0"] > s["n1"], Why.MISSING) | why_where(s["n0"] < s["n1"], Why.REPEATED)
    effect |= why_where(s["h0"] != 0, Why.MISSING | Why.REPEATED)
    merged = np.select(
        [space == Space.MESSAGE, space == Space.POSITION, space == Space.EFFECT],
        [message, position, effect],
        0,
    )
    why: Ints = merged | s["why"]
    return why


def jumped_over(s: Summary) -> Ints:
    """Of merged blocks of positions, those that a reader jumped over and could have read.

    What stands in a topic that the group does not read, observers alone can have jumped over.
    """
    mask: Ints = s["m4"] & np.where(_observed(s), s["m2"], s["m0"])
    return mask


def _observed(s: Summary) -> Bools:
    differs: Bools = (s["h1"] != 0) | (s["n2"] != 0)
    return differs


def _bits(mask: Ints) -> Ints:
    return np.bitwise_count(mask.view(np.uint64)).astype(np.int64)


def counted(s: Summary) -> Summary:
    """Totals over merged blocks of one run."""
    if not len(s["run"]):
        return joined([folded(0, Space.TOTAL, s["a"], s["b"])])
    run = int(s["run"][0])
    message, position = (s["space"] == space for space in (Space.MESSAGE, Space.POSITION))

    def bits(mask: Ints) -> int:
        return int(_bits(mask).sum())

    return joined(
        [
            total(run, Count.LOGGED, bits(s["m2"][message])),
            total(run, Count.NEVER_ACKED, bits(s["m0"][message] & ~s["m1"][message] & ~s["m2"][message])),
            total(run, Count.PROMISED, bits(s["m3"][message])),
            total(run, Count.CLAIMED, int(s["n1"][message].sum())),
            total(run, Count.LOG_ROWS, int(s["n0"][position].sum())),
            total(run, Count.PASSED, bits(s["m1"][position])),
            total(run, Count.DELIVERED, bits(s["m3"][position])),
            total(run, Count.DELIVERIES, int(s["n1"][position].sum())),
        ]
    )
