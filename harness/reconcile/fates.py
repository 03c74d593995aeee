"""What the events tell of each transaction: the one place that says when it is committed, and when certainly not."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.contracts import Outcome

TRANSACTION = ["run", "session", "txn"]
_ACKED, _REJECTED = int(Outcome.ACKED), int(Outcome.REJECTED)


def told(transactions: DataFrame) -> DataFrame:
    """run, session, txn, the booleans asked (to commit), committed and aborted, and asked_at, 0 for never.

    Certainly not committed: an acked abort, a rejected commit, or (NOT asked) a commit that nobody asked for.
    """
    commit, abort = "step = 'ended' AND did = 'commit'", "step = 'ended' AND did = 'abort'"
    conditions = {
        "asked": "did = 'commit'",
        "committed": f"{commit} AND outcome = {_ACKED}",
        "aborted": f"{commit} AND outcome = {_REJECTED} OR {abort} AND outcome = {_ACKED}",
    }
    return transactions.groupBy(*TRANSACTION).agg(
        *(f.expr(f"coalesce(bool_or({text}), false) AS {name}") for name, text in conditions.items()),
        f.expr("coalesce(min(CASE WHEN step = 'end' AND did = 'commit' THEN t END), 0) AS asked_at"),
    )
