"""Summaries of blocks of 64 messages or positions: how they are made, merged and weighed. Pure numpy, no Spark.

A block is one summary row: masks with one bit for each of its 64 items, counts, and hashes. Two sides that contain the
same items with the same contents have the same masks and counts, and their hashes cancel out (exclusive or), whatever
their order and wherever a file ends. So screening is a few bit operations, and only blocks that differ are looked at
record by record (harness.reconcile.closer_look). A difference may be innocent; an anomaly always makes a difference (a
hash of 64 bits would have to collide to hide one).

Every summary row has the columns of SUMMARY. Rows of one key (run, space, a, b) are merged as _MERGE says. The columns
have names for each space: harness.reconcile.screen.spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from harness.reconcile.arrays import Bools, Ints
from harness.reconcile.screen.spaces import COLUMNS, Space, Summary, Why, named

KEYS = ("run", "space", "a", "b")
MASKS = ("m0", "m1", "m2", "m3", "m4", "why")
SUMS, HASHES, HIGHEST = ("n0", "n1", "n2"), ("h0", "h1"), ("x",)
SUMMARY = (*KEYS, *MASKS, *SUMS, *HASHES, *HIGHEST)
BITS = 6  # 64 items a block

SLOT_NS = 10_000_000  # of the times at which acks came: gaps are known to 10 ms
KEY_SLOT_NS = 100_000_000  # of the times at which keyed records were sent and acked
CONCURRENT_NS = 2 * KEY_SLOT_NS  # an ack so long before an attempt is at least two slots before it
BIN = np.log(1.02)  # latencies are counted in bins two percent wide
LEAST_MS = 0.001
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
    FIRST_ATTEMPT = 9  # highest: the negative of its time
    LAST_ACK = 10  # highest: its time
    # Counted in merged blocks, before sound ones are dropped:
    LOGGED = 11  # messages in the log
    LOG_ROWS = 12
    PASSED = 13  # positions that the group has passed
    DELIVERED = 14  # positions that the group was given
    DELIVERIES = 15
    KEYED = 16  # records in the log with a key, whose partition was left to the client
    CLAIMED = 17  # acks with a position
    STEPS = 18  # of readers, from one delivery to the next one of a partition
    REWOUND = 19  # steps that go back
    LONG_JUMPS = 20  # steps over more blocks than LONGEST_JUMP
    COMMITS = 21  # acked commits of a partition
    NEVER_ACKED = 22  # messages without an ack that are not in the log
    INPUTS = 23  # of a pipeline, that its group has passed
    EFFECTS = 24  # found in the log that is owed
    ASSIGNED = 25  # how often a partition was given to a member of the group


def bit_of(index: Ints, where: Bools | None = None) -> Ints:
    """Return the bit of each item in the mask of its block; 0 where `where` is false."""
    bits = (np.uint64(1) << (index & 63).astype(np.uint64)).astype(np.int64)
    return bits if where is None else np.where(where, bits, 0)


def folded(run: int, space: Space, a: Ints, b: Ints, **columns: Ints) -> Summary:
    """Make summary rows, one for each key a, b; columns are named as in COLUMNS[space], and 0 if not given.

    Counting rows in BUCKET by bucket (a) and bin (b):  a 4 4 4 7    becomes  bucket 4 4 7
                                                        b 1 1 2 1             bin    1 2 1
                                                        rows 1 1 1 1          rows   2 1 1
    """
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
        stored = COLUMNS[space][name]
        out[stored] = _MERGE[stored].reduceat(values, starts)
    return out


def _in_order(a: Ints, b: Ints) -> Ints | None:
    """Return the order by a, then b; None if the rows are sorted already, as in most batches of a ledger."""
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
    """Merge all rows of one key into one row."""
    if not len(s["run"]):
        return s
    order = np.lexsort([s[name] for name in reversed(KEYS)])
    keys = np.stack([s[name][order] for name in KEYS])
    starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    found = {name: s[name][order][starts] for name in KEYS}
    return found | {name: reduce.reduceat(s[name][order], starts) for name, reduce in _MERGE.items()}


def why_where(where: Bools, why: Why) -> Ints:
    return np.where(where, np.int64(why), np.int64(0))


def totals(run: int, counts: Mapping[Count, int]) -> Summary:
    """Make a summary row for each count."""
    names, numbers = (np.array(list(map(int, part)), dtype=np.int64) for part in (counts, counts.values()))
    return folded(run, Space.TOTAL, names, np.zeros_like(names), number=numbers)


def highest_total(run: int, count: Count, value: int) -> Summary:
    """Make the summary row of a count that is a highest value."""
    one = np.ones(1, dtype=np.int64)
    return folded(run, Space.TOTAL, one * count, one * 0, highest=one * value)


def joined(parts: list[Summary]) -> Summary:
    return {name: np.concatenate([part[name] for part in parts]) for name in SUMMARY}


# --- weighing -------------------------------------------------------------------------------------


def weigh(s: Summary) -> Ints:
    """Return why each merged row is not sound, as bits of Why; 0: it is sound, or not a block.

    Hashes of two sides can be compared only if both contain the same items, each once.
    """
    m, p, e = (named(space, s) for space in (Space.MESSAGE, Space.POSITION, Space.EFFECT))
    # These two serve positions as well: the same stored columns contain passed, delivered, logged and log_rows there.
    missing, extra_rows = (m["owed"] & ~m["promised"]) != 0, m["log_rows"] != _bits(m["logged"])
    differ = (m["attempted"] != m["logged"]) | extra_rows
    claimed = m["acked_places"] > 0  # acks of acks=0 have no position
    message = (
        why_where(missing, Why.MISSING)
        | why_where((m["logged"] & ~m["attempted"]) != 0, Why.UNEXPECTED)
        | why_where(extra_rows, Why.REPEATED)
        | why_where(differ | (m["content"] != 0), Why.CONTENT)
        | why_where(claimed & (differ | (m["places"] != 0)), Why.PLACE)
    )
    again = p["deliveries"] != _bits(p["delivered"])
    apart = (p["readable"] != p["delivered"]) | again | extra_rows
    position = (
        why_where(missing, Why.MISSING)
        | why_where((p["delivered"] & ~p["readable"]) != 0, Why.UNEXPECTED)
        | why_where(again, Why.REPEATED)
        | why_where(extra_rows, Why.PLACE)
        | why_where(apart | (p["content"] != 0), Why.CONTENT)
        | why_where(_jumped_over(p) != 0, Why.JUMPED)
        | why_where(_observed(p), Why.OBSERVED)
    )
    space = s["space"]
    effect = why_where(e["expected"] > e["found"], Why.MISSING)
    effect |= why_where(e["expected"] < e["found"], Why.REPEATED)
    effect |= why_where(e["content"] != 0, Why.MISSING | Why.REPEATED)
    merged = np.select(
        [space == Space.MESSAGE, space == Space.POSITION, space == Space.EFFECT],
        [message, position, effect],
        0,
    )
    why: Ints = merged | s["why"]
    return why


def _jumped_over(p: Summary) -> Ints:
    """Return the positions of merged blocks that a reader jumped over and could have read, as masks.

    In a topic that the group does not read, only observers can have jumped over a record.
    """
    mask: Ints = p["jumped"] & np.where(_observed(p), p["logged"], p["readable"])
    return mask


def _observed(p: Summary) -> Bools:
    differs: Bools = (p["observed_content"] != 0) | (p["observed_rows"] != 0)
    return differs


def _bits(mask: Ints) -> Ints:
    return np.bitwise_count(mask.view(np.uint64)).astype(np.int64)


def counted(s: Summary) -> Summary:
    """Return the totals over merged blocks of one run."""
    if not len(s["run"]):
        return joined([folded(0, Space.TOTAL, s["a"], s["b"])])
    run = int(s["run"][0])
    message, position = (s["space"] == space for space in (Space.MESSAGE, Space.POSITION))
    m, p = named(Space.MESSAGE, s), named(Space.POSITION, s)

    def bits(mask: Ints) -> int:
        return int(_bits(mask).sum())

    return totals(
        run,
        {
            Count.LOGGED: bits(m["logged"][message]),
            Count.NEVER_ACKED: bits((m["attempted"] & ~m["owed"] & ~m["logged"])[message]),
            Count.CLAIMED: int(m["acked_places"][message].sum()),
            Count.LOG_ROWS: int(p["log_rows"][position].sum()),
            Count.PASSED: bits(p["passed"][position]),
            Count.DELIVERED: bits(p["delivered"][position]),
            Count.DELIVERIES: int(p["deliveries"][position].sum()),
        },
    )
