"""Facts about a run that the kernels need: its transactions, sessions, commits, owners, observers and final readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from harness.ledger.transform import Transform
from harness.reconcile.arrays import Bools, Ints, looked_up
from harness.reconcile.screen.commits import Commits, commits_by_place
from harness.reconcile.screen.observers import Observer
from harness.reconcile.screen.partition_owners import NO_OWNERS, Ownership, ownership
from harness.reconcile.screen.transaction_fates import Fate, fates_by_run
from harness.reconcile.seal.readings import all_effects_read
from harness.reconcile.seal.sealed import Sealed

BUCKET_NS = 250_000_000  # of the timeline, unless the run is long
# Of the timeline, about; all are in the memory of the driver, so longer runs have wider ones
MOST_BUCKETS = 1 << 14

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Facts:
    """Facts about one run that the kernels need."""

    run: int
    zero_ns: int
    group_reads_committed: bool
    # Transactions as session << 32 | txn, sorted, and the Fate of each.
    transactions: Ints = field(default_factory=lambda: _NONE)
    fates: Ints = field(default_factory=lambda: _NONE)
    # When the commit of each was first requested; 0 if it never was, or if the transaction is aborted.
    asked: Ints = field(default_factory=lambda: _NONE)
    # Producer sessions, sorted, and how many messages each attempted.
    sessions: Ints = field(default_factory=lambda: _NONE)
    attempted: Ints = field(default_factory=lambda: _NONE)
    commits: Mapping[int, Commits] = field(default_factory=dict)  # by place
    transform: Transform | None = None  # of a pipeline
    owned: Ownership = NO_OWNERS
    observers: Mapping[int, Observer] = field(default_factory=dict)  # by the number of the reader
    bucket_ns: int = BUCKET_NS
    # By topic and 1 + partition: True if it was read whole; at 0: if all partitions of the topic were. None: everything was.
    whole: Bools | None = None

    def fate_of(self, session: Ints, txn: Ints) -> Ints:
        """Return the fate of each record's transaction; OPEN if there is no event about it."""
        return looked_up(session << 32 | txn, self.transactions, self.fates, Fate.OPEN)

    def asked_at(self, session: Ints, txn: Ints) -> Ints:
        """Return the time at which the commit of each record's transaction was requested; 0 if it never was."""
        return looked_up(session << 32 | txn, self.transactions, self.asked, 0)

    def was_read(self, topic: Ints, partition: Ints) -> Bools:
        """Mark the messages whose partition (-1: every partition of the topic) was read to the end (E11)."""
        if self.whole is None:
            return np.ones(len(topic), dtype=np.bool_)
        topics, width = self.whole.shape
        known = (topic < topics) & (partition >= -1) & (partition < width - 1)
        read: Bools = known & self.whole.ravel()[np.where(known, topic * width + partition + 1, 0)]
        return read

    def was_attempted(self, session: Ints, seq: Ints) -> Bools:
        """Mark the messages that are in the journal of their sender."""
        attempted: Bools = seq < looked_up(session, self.sessions, self.attempted, 0)
        return attempted


def facts(small: Mapping[str, pa.Table], sealed: Sequence[Sealed]) -> list[Facts]:
    """Return the facts about each run that the kernels need."""
    fates, commits = fates_by_run(small["transactions"]), commits_by_place(small["commits"])
    owned = ownership(small["assignments"])
    bounds = small["bounds"].to_pylist()
    made = []
    for one in sealed:
        read = [row for row in bounds if row["run"] == one.run]
        # Effects may be missing because they were not read, or were deleted: then none is expected.
        transform = Transform(**one.transform) if one.transform and all_effects_read(read) else None
        sessions = np.array(sorted((s.session, s.attempted) for s in one.sessions), dtype=np.int64)
        sessions = sessions.reshape(-1, 2)
        made.append(
            Facts(
                one.run, one.zero_ns, one.group_isolation == "read_committed",
                *fates.get(one.run, (_NONE, _NONE, _NONE)), sessions[:, 0].copy(), sessions[:, 1].copy(),
                commits.get(one.run, {}), transform, owned.get(one.run, NO_OWNERS),
                {observed.reader: Observer.of(observed) for observed in one.observers},
                bucket_ns(max((event["t"] for event in one.events), default=0) - one.zero_ns),
                _whole(read),
            )
        )  # fmt: skip
    return made


def bucket_ns(length_ns: int) -> int:
    """Return the width of a bucket of the timeline for a run of this length."""
    width = BUCKET_NS
    while length_ns > width * MOST_BUCKETS:
        width *= 2
    return width


def _whole(bounds: Sequence[Mapping[str, Any]]) -> Bools:
    """Return `Facts.whole`."""
    shape = (
        max((row["topic"] for row in bounds), default=0) + 1,
        max((row["partition"] for row in bounds), default=0) + 2,
    )
    whole = np.zeros(shape, dtype=np.bool_)
    for row in bounds:
        whole[row["topic"], row["partition"] + 1] = row["whole"]
    for topic in {row["topic"] for row in bounds}:
        whole[topic, 0] = all(row["whole"] for row in bounds if row["topic"] == topic)
    return whole
