"""Answers as pieces on their way through Spark: findings for the driver, and rows for the shares of later rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

from harness.reconcile.arrays import Ints, mixed, place_of
from harness.reconcile.find.findings import to_arrow
from harness.reconcile.find.rounds import FINDINGS, Answers
from harness.reconcile.spark.pieces import ALL_TOGETHER, Shares, Subject, piece, pieces

_UNKNOWN = -1  # a record whose message is unknown


ROWS_A_PIECE = 1 << 12  # of a result: Spark hands them to the driver by the hundred


def packed(answers: Answers, shares: Shares = ALL_TOGETHER) -> Iterator[pa.RecordBatch]:
    for name, rows in answers.results.items():
        found = to_arrow(rows) if name == FINDINGS else rows.to_arrow()
        for first in range(0, max(1, found.num_rows), ROWS_A_PIECE):
            yield piece(Subject.RESULT, name, found.slice(first, ROWS_A_PIECE))
    for (subject, name), rows in answers.onward.items():
        for batch in rows.to_arrow().combine_chunks().to_batches():
            yield from pieces(subject, name, batch, _shares_of(subject, rows, shares))


def _shares_of(subject: Subject, rows: pl.DataFrame, shares: Shares) -> Ints | None:
    """Return the share of each row: rows of one item are in one share, messages as harness.reconcile.select divides them."""

    def column(name: str) -> Ints:
        return rows[name].fill_null(_UNKNOWN).to_numpy().astype(np.int64)

    if subject is Subject.MESSAGES:
        return shares.of(column("run"), column("session"), column("seq"))
    if subject is Subject.ORDER:
        place = place_of(column("topic"), column("partition"))
        return shares.of(column("run"), mixed(column("session"), place))
    if subject is Subject.KEYS:
        # One message may be in several topics; its places go with the first.
        topic = column("key_topic" if "key_topic" in rows.columns else "topic")
        return shares.of(column("run"), place_of(topic, column("key")))
    assert subject is Subject.TRANSACTIONS, subject
    return shares.of(column("run"), mixed(column("session"), column("txn")))
