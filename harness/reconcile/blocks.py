"""Vectorised kernels that screen a ledger by blocks of 64 messages or positions. Pure numpy, no Spark in here.

A block is one row of summary: masks with one bit for each of its 64 items, counts, and hashes. Two sides that hold
the same items with the same contents have the same masks and counts, and their hashes cancel out (exclusive or),
whatever their order and wherever a file ends; so screening is a few bit operations, and only blocks that differ are
looked at record by record (harness.reconcile.look). A difference may be innocent; an anomaly always makes a difference
(a hash of 64 bits would have to collide to hide one).

Every summary row has the columns of SUMMARY. Rows of one key (run, space, a, b) are merged by the aggregates named
there. What the columns mean depends on `space`; the kernels below are the only writers and `weigh` the only reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contracts import Outcome
from harness.message import BAD_PAYLOAD, FOREIGN_RUN

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]
Summary = dict[str, Ints]

KEYS = ("run", "space", "a", "b")
MASKS, SUMS, HASHES, HIGHEST = ("m0", "m1", "m2", "m3", "why"), ("n0", "n1", "n2"), ("h0", "h1"), ("x",)
SUMMARY = (*KEYS, *MASKS, *SUMS, *HASHES, *HIGHEST)
BITS = 6  # 64 items a block

BUCKET_NS = 250_000_000  # of the timeline
SLOT_NS = 10_000_000  # of the times at which acks came: gaps are known to 10 ms
BIN = np.log(1.02)  # latencies are counted in bins two percent wide
LEAST_MS = 0.001
NO_PHASE, BEFORE, DURING, AFTER = -1, 0, 1, 2


class Space(IntEnum):
    """What a and b of a summary row say, and its columns."""

    MESSAGE = (
        0  # session, seq block | m0 attempted, m1 owed, m2 logged, m3 promised, n0 log rows, n1 acked places
    )
    #              h0 contents sent against contents found, h1 places acked against places found, why: Why bits
    POSITION = 1  # place, offset block | m0 for the group to read, m1 passed by it, m2 logged, m3 delivered,
    #               n0 log rows, n1 deliveries, h0 contents to read against contents delivered, why: Why bits
    KEY = 2  # topic and key, 0 | m0 and m1 the partitions or-ed, plain and inverted; n0 records
    RUN_OF_ORDER = 3  # session and place, first offset | m0 last offset, m1 least seq, m2 highest seq, n0 1
    ACK_SLOTS = 4  # place, block of slots | m0 slots with an ack
    BUCKET = 5  # bucket, bin of latency (or ATTEMPTED, DELIVERED) | n0 how many, x longest latency in ns
    TOTAL = 6  # a Count | n0 how many, x as the Count says


ATTEMPTED_BIN, DELIVERED_BIN = -(1 << 30), -(1 << 30) + 1


class Count(IntEnum):
    ATTEMPTED = 0
    ACKED = 1
    REJECTED = 2
    UNKNOWN = 3
    PROGRESS_BEFORE = 4
    PROGRESS_AFTER = 5
    OWED = 6
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
    KEYS = 17
    CLAIMED = 18  # acks that told a place
    PROMISED = 19  # messages in the log that is owed


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


class Fate(IntEnum):
    """What the events tell of a transaction; OPEN ones are decided by what was read (E2)."""

    OPEN = 0
    COMMITTED = 1
    ABORTED = 2


@dataclass(frozen=True)
class Facts:
    """What the kernels have to know of one run."""

    run: int
    zero_ns: int
    group_reads_committed: bool
    topic_unchanged: bool = True
    # Transactions as session << 32 | txn, sorted, and the Fate of each.
    transactions: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    fates: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def fate_of(self, session: Ints, txn: Ints) -> Ints:
        """The fate of each record's transaction; OPEN for one that no event tells of."""
        if not len(self.transactions):
            return np.zeros(len(txn), dtype=np.int64)
        wanted = session << 32 | txn
        at = np.minimum(np.searchsorted(self.transactions, wanted), len(self.transactions) - 1)
        fates: Ints = np.where(self.transactions[at] == wanted, self.fates[at], Fate.OPEN)
        return fates


def place_of(topic: Ints, partition: Ints) -> Ints:
    return topic << 32 | partition


def mixed(*columns: Ints) -> Ints:
    """A hash of each row: 64 bits, so that hashes that cancel out mean equal rows. Wraps on purpose."""
    state = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        state = (state ^ column.astype(np.uint64)) * np.uint64(0x9E37_79B9_7F4A_7C15)
        state ^= state >> np.uint64(29)
        state *= np.uint64(0xBF58_476D_1CE4_E5B9)
        state ^= state >> np.uint64(32)
    return state.astype(np.int64)


def bit_of(index: Ints, where: Bools | None = None) -> Ints:
    """The bit of each item in the mask of its block; none where `where` is false."""
    bits = (np.uint64(1) << (index & 63).astype(np.uint64)).astype(np.int64)
    return bits if where is None else np.where(where, bits, 0)


def folded(run: int, space: Space, a: Ints, b: Ints, **columns: Ints) -> Summary:
    """Merge the rows of each key; columns that are not given are 0."""
    count = len(a)
    if count == 0:
        return {name: np.zeros(0, dtype=np.int64) for name in SUMMARY}
    if np.all((a[1:] > a[:-1]) | ((a[1:] == a[:-1]) & (b[1:] >= b[:-1]))):
        order = None  # ledgers are mostly written in order: most batches need no sorting
    else:
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
    starts = np.flatnonzero(np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1])])
    out = {name: np.zeros(len(starts), dtype=np.int64) for name in SUMMARY}
    out["run"][:], out["space"][:], out["a"], out["b"] = run, space, a[starts], b[starts]
    for name, values in columns.items():
        values = values if order is None else values[order]
        out[name] = _MERGE[name].reduceat(values, starts)
    return out


_MERGE: Mapping[str, Any] = {
    **dict.fromkeys(MASKS, np.bitwise_or),
    **dict.fromkeys(SUMS, np.add),
    **dict.fromkeys(HASHES, np.bitwise_xor),
    **dict.fromkeys(HIGHEST, np.maximum),
}


def _why(where: Bools, why: Why) -> Ints:
    return np.where(where, np.int64(why), np.int64(0))


def total(run: int, count: Count, n: int, x: int = 0) -> Summary:
    one = np.ones(1, dtype=np.int64)
    return folded(run, Space.TOTAL, one * count, one * 0, n0=one * n, x=one * x)


def joined(parts: list[Summary]) -> Summary:
    return {name: np.concatenate([part[name] for part in parts]) for name in SUMMARY}


# --- the three kernels ----------------------------------------------------------------------------


def screen_attempts(c: Columns, facts: Facts) -> Summary:
    """Attempts and their outcomes: session, seq, t, topic, partition, key, txn, outcome, t_outcome, told_partition,
    offset, phase; -1 stands for null."""
    run, session, seq = facts.run, c["session"], c["seq"]
    acked = c["outcome"] == Outcome.ACKED
    fate = facts.fate_of(session, c["txn"])
    in_txn = c["txn"] > 0
    owed = np.where(in_txn, (fate == Fate.COMMITTED) & (c["outcome"] != Outcome.REJECTED), acked)
    placed = c["offset"] >= 0
    messages = folded(
        run, Space.MESSAGE, session, seq >> BITS,
        m0=bit_of(seq), m1=bit_of(seq, owed), n1=placed.astype(np.int64),
        h0=mixed(seq, c["key"], c["txn"]),
        h1=np.where(placed, mixed(seq, place_of(c["topic"], c["told_partition"]), c["offset"]), 0),
        why=_why(in_txn & (fate == Fate.OPEN), Why.OPEN_TXN),
    )  # fmt: skip
    counts = [
        total(run, Count.ATTEMPTED, len(seq)),
        total(run, Count.ACKED, int(acked.sum())),
        total(run, Count.REJECTED, int((c["outcome"] == Outcome.REJECTED).sum())),
        total(run, Count.UNKNOWN, int((c["outcome"] == Outcome.UNKNOWN).sum())),
        total(run, Count.PROGRESS_BEFORE, int((acked & (c["phase"] <= BEFORE)).sum())),
        total(
            run, Count.PROGRESS_AFTER, int((acked & ((c["phase"] == AFTER) | (c["phase"] == NO_PHASE))).sum())
        ),
        total(run, Count.OWED, int(owed.sum())),
    ]
    return joined([messages, *counts, *_times_of_attempts(c, facts, acked)])


def _times_of_attempts(c: Columns, facts: Facts, acked: Bools) -> list[Summary]:
    run = facts.run
    if not len(c["t"]):
        return []
    parts = [total(run, Count.FIRST_ATTEMPT, 0, -int(c["t"].min()))]
    sent = (c["t"] - facts.zero_ns) // BUCKET_NS
    parts.append(folded(run, Space.BUCKET, sent, np.full_like(sent, ATTEMPTED_BIN), n0=np.ones_like(sent)))
    if not acked.any():
        return parts
    told = c["t_outcome"][acked]
    partition = np.where(c["told_partition"] >= 0, c["told_partition"], c["partition"])[acked]
    latency = told - c["t"][acked]
    since = told - facts.zero_ns
    bins = np.floor(np.log(np.maximum(latency / 1e6, LEAST_MS)) / BIN).astype(np.int64)
    parts.append(total(run, Count.LAST_ACK, 0, int(told.max())))
    parts.append(folded(run, Space.BUCKET, since // BUCKET_NS, bins, n0=np.ones_like(bins), x=latency))
    slot = since // SLOT_NS
    parts.append(
        folded(run, Space.ACK_SLOTS, place_of(c["topic"][acked], partition), slot >> BITS, m0=bit_of(slot))
    )
    return parts


def screen_log(c: Columns, facts: Facts) -> Summary:
    """The log as the final reader found it: topic, partition, offset, session, seq, txn, key, intended_partition,
    flags, and the booleans uncommitted, committed, promised, passed."""
    run, place, offset = facts.run, place_of(c["topic"], c["partition"]), c["offset"]
    for_group = c["committed"] if facts.group_reads_committed else c["uncommitted"]
    content = mixed(c["session"], c["seq"], c["txn"], c["key"], offset)
    positions = folded(
        run, Space.POSITION, place, offset >> BITS,
        m0=bit_of(offset, for_group), m1=bit_of(offset, c["passed"]), m2=bit_of(offset),
        n0=np.ones_like(offset), h0=np.where(for_group, content, 0), why=_why(c["flags"] != 0, Why.FLAGGED),
    )  # fmt: skip
    ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    strange = total(run, Count.STRANGE, int((~ours).sum()))
    c = c if ours.all() else {name: values[ours] for name, values in c.items()}
    return joined([positions, strange, *_messages_in_log(c, facts)])


def _messages_in_log(c: Columns, facts: Facts) -> list[Summary]:
    run, session, seq, place = facts.run, c["session"], c["seq"], place_of(c["topic"], c["partition"])
    named = c["intended_partition"] >= 0
    elsewhere = (named & (c["intended_partition"] != c["partition"])) | (c["topic"] != 0)
    read_in_txn = (c["txn"] > 0) & c["committed"]
    unsure = read_in_txn & (facts.fate_of(session, c["txn"]) != Fate.COMMITTED)
    order, overtaken = _order(c, facts, place)
    messages = folded(
        run, Space.MESSAGE, session, seq >> BITS,
        m2=bit_of(seq), m3=bit_of(seq, c["promised"]), n0=np.ones_like(seq),
        h0=mixed(seq, c["key"], c["txn"]), h1=mixed(seq, place, c["offset"]),
        why=_why(elsewhere, Why.MISPLACED) | _why(unsure, Why.READ_UNCOMMITTED) | _why(overtaken, Why.OVERTAKEN),
    )  # fmt: skip
    parts = [
        messages,
        order,
        total(run, Count.PLACED, int(named.sum())),
        total(run, Count.READ_IN_TXN, int(read_in_txn.sum())),
    ]
    chosen = (c["key"] >= 0) & ~named
    if facts.topic_unchanged and chosen.any():
        partition, key = c["partition"][chosen], place_of(c["topic"][chosen], c["key"][chosen])
        once = np.ones_like(key)
        parts.append(folded(run, Space.KEY, key, once * 0, m0=partition, m1=~partition, n0=once))
    return parts


def _order(c: Columns, facts: Facts, place: Ints) -> tuple[Summary, Bools]:
    """Stretches of order for stitching, and who stands behind, or is, a later message of its session.

    Both sides of a pair are marked: a closer look at these alone then finds the same pair.
    """
    session, seq, offset = c["session"], c["seq"], c["offset"]
    marked = np.zeros(len(seq), dtype=np.bool_)
    if not len(seq):
        return joined([folded(facts.run, Space.RUN_OF_ORDER, seq, seq)]), marked
    order = np.lexsort((offset, place, session))
    s, p, q = session[order], place[order], seq[order]
    starts = np.flatnonzero(np.r_[True, (s[1:] != s[:-1]) | (p[1:] != p[:-1])])
    ends = np.r_[starts[1:], len(s)]
    group = np.cumsum(np.r_[False, (s[1:] != s[:-1]) | (p[1:] != p[:-1])])
    # The highest seq so far in each group at once: lift each group above the one before it.
    lift = group * (int(q.max()) - int(q.min()) + 1)
    highest = np.maximum.accumulate(q + lift)
    behind = highest != q + lift
    if behind.any():
        # Who is ahead of each: the last row at which the highest so far was reached.
        reached = np.maximum.accumulate(np.where(behind, 0, np.arange(len(q))))
        marked[order[behind]] = True
        marked[order[reached[behind]]] = True
    least = np.minimum.reduceat(q, starts)
    most = np.maximum.reduceat(q, starts)
    place_and_session = mixed(s[starts], p[starts])
    runs = folded(
        facts.run, Space.RUN_OF_ORDER, place_and_session, offset[order][starts],
        m0=offset[order][ends - 1], m1=least, m2=most, n0=np.ones(len(starts), dtype=np.int64),
        n1=s[starts], n2=p[starts],
    )  # fmt: skip
    return runs, marked


def screen_deliveries(c: Columns, facts: Facts) -> Summary:
    """What the group was given: topic, partition, offset, session, seq, txn, key, flags, t."""
    run, offset, session, seq = facts.run, c["offset"], c["session"], c["seq"]
    positions = folded(
        run, Space.POSITION, place_of(c["topic"], c["partition"]), offset >> BITS,
        m3=bit_of(offset), n1=np.ones_like(offset),
        h0=mixed(session, seq, c["txn"], c["key"], offset), why=_why(c["flags"] != 0, Why.FLAGGED),
    )  # fmt: skip
    ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    in_txn = ours & (c["txn"] > 0)
    doubtful = in_txn & (facts.fate_of(session, c["txn"]) != Fate.COMMITTED)
    bucket = (c["t"] - facts.zero_ns) // BUCKET_NS
    parts = [
        positions,
        total(run, Count.STRANGE, int((~ours).sum())),
        total(run, Count.READ_IN_TXN, int(in_txn.sum())),
        folded(run, Space.BUCKET, bucket, np.full_like(bucket, DELIVERED_BIN), n0=np.ones_like(bucket)),
    ]
    if doubtful.any():
        blocks = seq[doubtful] >> BITS
        parts.append(
            folded(
                run, Space.MESSAGE, session[doubtful], blocks, why=np.full_like(blocks, Why.READ_UNCOMMITTED)
            )
        )
    return joined(parts)


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
        _why(missing, Why.MISSING)
        | _why((m2 & ~m0) != 0, Why.NOBODYS)
        | _why(extra_rows, Why.REPEATED)
        | _why(differ | (s["h0"] != 0), Why.CONTENT)
        | _why(claimed & (differ | (s["h1"] != 0)), Why.PLACE)
    )
    again = s["n1"] != delivered
    apart = (m0 != m3) | again | extra_rows
    position = (
        _why(missing, Why.MISSING)
        | _why((m3 & ~m0) != 0, Why.NOBODYS)
        | _why(again, Why.REPEATED)
        | _why(extra_rows, Why.PLACE)
        | _why(apart | (s["h0"] != 0), Why.CONTENT)
    )
    split = _why((m0 & m1) != 0, Why.MISPLACED)
    space = s["space"]
    merged = np.select(
        [space == Space.MESSAGE, space == Space.POSITION, space == Space.KEY], [message, position, split], 0
    )
    why: Ints = merged | s["why"]
    return why


def _bits(mask: Ints) -> Ints:
    return np.bitwise_count(mask.view(np.uint64)).astype(np.int64)


def counted(s: Summary) -> Summary:
    """Totals over merged blocks of one run."""
    if not len(s["run"]):
        return joined([folded(0, Space.TOTAL, s["a"], s["b"])])
    run = int(s["run"][0])
    message, position, key = (s["space"] == space for space in (Space.MESSAGE, Space.POSITION, Space.KEY))

    def bits(mask: Ints) -> int:
        return int(_bits(mask).sum())

    return joined(
        [
            total(run, Count.LOGGED, bits(s["m2"][message])),
            total(run, Count.PROMISED, bits(s["m3"][message])),
            total(run, Count.CLAIMED, int(s["n1"][message].sum())),
            total(run, Count.LOG_ROWS, int(s["n0"][position].sum())),
            total(run, Count.PASSED, bits(s["m1"][position])),
            total(run, Count.DELIVERED, bits(s["m3"][position])),
            total(run, Count.DELIVERIES, int(s["n1"][position].sum())),
            total(run, Count.KEYS, int((s["n0"][key] > 1).sum())),
        ]
    )
