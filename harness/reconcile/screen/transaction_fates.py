"""Fates of transactions by their events: the one place that decides which are committed and which certainly not."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from harness.contracts import Outcome
from harness.reconcile.arrays import Bools, Ints
from harness.reconcile.seal.sealed import FENCED

TRANSACTION = ["run", "session", "txn"]


class Fate(IntEnum):
    """The end of a transaction by its events alone; what was read decides the OPEN ones (E2)."""

    OPEN = 0
    COMMITTED = 1
    ABORTED = 2


def fates_by_events(transactions: pa.Table) -> pa.Table:
    """Return run, session, txn, the booleans asked (to commit), committed and aborted, and asked_at (0: never).

    A transaction is certainly not committed if an abort was acked, a commit was rejected or never requested (NOT asked), or
    the commit was requested when the producer was fenced already, whatever the client reported then.
    """
    c = {
        name: transactions.column(name).to_numpy(zero_copy_only=False)
        for name in (*TRANSACTION, "step", "did")
    }
    outcome = transactions.column("outcome").fill_null(-1).to_numpy(zero_copy_only=False)
    t = transactions.column("t").to_numpy(zero_copy_only=False)
    order = np.lexsort((c["txn"], c["session"], c["run"]))
    keys = [c[name][order] for name in TRANSACTION]
    starts = (
        np.flatnonzero(np.r_[True, np.logical_or.reduce([key[1:] != key[:-1] for key in keys])])
        if len(order)
        else order
    )

    def in_any(which: Bools) -> Any:
        return np.logical_or.reduceat(which[order], starts) if len(order) else which

    to_commit, ended, fenced = c["did"] == "commit", c["step"] == "ended", in_any(c["step"] == FENCED)
    begun = (c["step"] == "end") & to_commit
    acked, rejected = outcome == Outcome.ACKED, outcome == Outcome.REJECTED
    never = np.iinfo(np.int64).max

    first = np.where(begun, t, never)
    asked_at = np.minimum.reduceat(first[order], starts) if len(order) else first
    return pa.table(
        {name: pa.array(key[starts], pa.int64()) for name, key in zip(TRANSACTION, keys, strict=True)}
        | {
            "asked": in_any(to_commit),
            "committed": in_any(ended & to_commit & acked) & ~fenced,
            "aborted": in_any(ended & ((to_commit & rejected) | ((c["did"] == "abort") & acked))) | fenced,
            "asked_at": pa.array(np.where(asked_at == never, 0, asked_at), pa.int64()),
        }
    )


def fates_by_run(transactions: pa.Table) -> dict[int, tuple[Ints, Ints, Ints]]:
    """Return, by run, its transactions as session << 32 | txn, sorted, the Fate of each, and when its commit was requested."""
    table = fates_by_events(transactions)
    c = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    fate = np.where(
        c["committed"],
        Fate.COMMITTED,
        np.where(c["aborted"] | ~c["asked"], Fate.ABORTED, Fate.OPEN),
    )
    # A read of an aborted transaction is `aborted_read`, never `premature_read`: no commit time for it.
    asked = np.where(fate == Fate.ABORTED, 0, c["asked_at"])
    fates = {}
    for run in np.unique(c["run"]).tolist():
        mine = c["run"] == run
        packed = c["session"][mine] << 32 | c["txn"][mine]
        order = np.argsort(packed)
        fates[run] = packed[order], fate[mine][order].astype(np.int64), asked[mine][order].astype(np.int64)
    return fates
