"""Spaces of summary rows: what a row is about, the names of its columns, and why it may be in doubt.

Summary rows of all spaces are stored in one table, so they share stored columns: the key a and b, masks m0 to m4, sums n0
to n2, hashes h0 and h1, and the maximum x. COLUMNS names them for each space; `folded` writes rows by these names and
`named` reads them. No other module uses the stored names.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag

from harness.reconcile.arrays import Ints

Summary = dict[str, Ints]


class Space(IntEnum):
    """The subject of a summary row."""

    MESSAGE = 0  # a block of 64 messages of one session
    POSITION = 1  # a block of 64 offsets of one partition
    KEY = 2  # a block of 64 keys of one topic in one partition
    RUN_OF_ORDER = 3  # the messages of one session that one batch has in one partition
    ACK_SLOTS = 4  # a block of 64 slots of time in one partition
    BUCKET = 5  # a bucket of the timeline and a bin of latency, or ATTEMPTED_BIN, or DELIVERED_BIN
    TOTAL = 6  # one Count
    READING = 7  # the deliveries to one reader from one partition that one task has seen
    GIVEN = 8  # a commit, numbered by time
    BELOW = 9  # a commit, numbered by offset
    KEY_ACKED = 10  # a slot of time in one partition
    KEY_SENT = 11  # a slot of time in one partition
    EFFECT = 12  # a block of 64 offsets of an input of a pipeline
    OWNER = 13  # no rows: harness.reconcile.screen.partition_owners finds two owners from the events


# Hashes of two sides cancel out: `content` of MESSAGE is 0 if what was sent is what was found. A lane is a hash of session
# and place, or of reader and place. Rows of one key are merged: masks by or, sums by addition. So a row of RUN_OF_ORDER
# or READING is meaningful only if `rows` is 1, and `place_sum // rows` is the place in any case.
COLUMNS: Mapping[Space, Mapping[str, str]] = {
    Space.MESSAGE: {
        "session": "a", "seq_block": "b", "attempted": "m0", "owed": "m1", "logged": "m2", "promised": "m3",
        "log_rows": "n0", "acked_places": "n1",
        "content": "h0",  # sent against found
        "places": "h1",  # acked against found
        "why": "why",
    },
    Space.POSITION: {
        "place": "a", "offset_block": "b",
        "readable": "m0",  # by the group
        "passed": "m1",  # by the group
        "logged": "m2",
        "delivered": "m3",  # to the group
        "jumped": "m4",  # by any reader
        "log_rows": "n0",
        "deliveries": "n1",  # to the group
        "content": "h0",  # readable against delivered
        "observed_content": "h1", "observed_rows": "n2",  # what observers had to get against what they got
        "why": "why",
    },
    Space.KEY: {"topic_and_key_block": "a", "partition": "b", "keys": "m0"},
    Space.RUN_OF_ORDER: {
        "lane": "a", "first_offset": "b", "last_offset": "m0", "least_seq": "m1", "highest_seq": "m2",
        "rows": "n0", "session_sum": "n1", "place_sum": "n2",
    },
    Space.ACK_SLOTS: {"place": "a", "slot_block": "b", "slots": "m0"},
    Space.BUCKET: {"bucket": "a", "bin": "b", "rows": "n0", "longest_ns": "x"},
    Space.TOTAL: {"count": "a", "number": "n0", "highest": "x"},
    Space.READING: {
        "lane": "a", "first_t": "b", "first_offset": "m0", "last_offset": "m1", "first_generation": "m2",
        "last_generation": "m3", "rows": "n0", "place_sum": "n2",
    },
    Space.GIVEN: {"place": "a", "commit": "b", "next_offset": "x"},  # 1 + the highest offset given to the group by then
    Space.BELOW: {"place": "a", "commit": "b", "next_offset": "x"},  # 1 + the highest readable offset below the commit
    Space.KEY_ACKED: {"place": "a", "slot": "b", "highest_offset": "x"},  # of a keyed record acked in the slot
    Space.KEY_SENT: {"place": "a", "slot": "b", "minus_lowest_offset": "x"},  # of a keyed record sent in the slot
    Space.EFFECT: {
        "place": "a", "offset_block": "b", "expected": "n0", "found": "n1",
        "content": "h0",  # expected against found
    },
    Space.OWNER: {},
}  # fmt: skip


def named(space: Space, rows: Summary) -> Summary:
    """Return the columns of rows of one space by their names, without copying them."""
    return {"run": rows["run"]} | {name: rows[stored] for name, stored in COLUMNS[space].items()}


class Why(IntFlag):
    """Reasons why a block is not sound. Kernels see the first ones in a record; `weigh` adds the others."""

    MISPLACED = 1
    READ_UNCOMMITTED = 2  # read although no event says that its transaction was committed
    OVERTAKEN = 4
    OPEN_TXN = 8  # the events do not say how its transaction ended; readers may
    FLAGGED = 16
    MISSING = 32  # owed and not in the log, or to be read and not delivered
    UNEXPECTED = 64  # in the log and not attempted, or delivered and not to be read
    REPEATED = 128
    CONTENT = 256  # differs, or cannot be compared because the two sides have different items
    PLACE = 512  # likewise
    JUMPED = 1024  # a reader jumped over a record that it could read
    PREMATURE = 2048  # read before the producer asked to commit its transaction
    KEYS_CROSSED = 4096  # keyed records may be in another order than they were sent
    OBSERVED = 8192  # an observer got something else than the log contains
