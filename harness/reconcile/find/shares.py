"""Answers as pieces on their way through Spark: findings for the driver, and rows for the shares of later rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

from harness.reconcile.blocks import Ints, place_of
from harness.reconcile.find.findings import to_arrow
from harness.reconcile.find.rounds import FINDINGS, Answers
from harness.reconcile.pieces import Subject, near, piece, pieces, share_of

_UNKNOWN = -1  # a record that cannot say which message it is


def packed(answers: Answers, shares: int) -> Iterator[pa.RecordBatch]:
    for name, rows in answers.results.items():
        yield piece(Subject.RESULT, name, to_arrow(rows) if name == FINDINGS else rows.to_arrow())
    for (subject, name), rows in answers.onward.items():
        share = share_of(rows["run"].to_numpy(), *_together(subject, rows), shares)
        for batch in rows.to_arrow().combine_chunks().to_batches():
            yield from pieces(subject, name, batch, share)


def _together(subject: Subject, rows: pl.DataFrame) -> tuple[Ints, Ints]:
    """Two numbers: rows with the same ones have to be in one share. For messages as harness.reconcile.select has it."""

    def column(name: str) -> Ints:
        return rows[name].fill_null(_UNKNOWN).to_numpy().astype(np.int64)

    if subject is Subject.MESSAGES:
        return column("session"), near(column("seq"))
    if subject is Subject.ORDER:
        return column("session"), place_of(column("topic"), column("partition"))
    if subject is Subject.KEYS:
        # One message may be in several topics; its places go with the first.
        return column("key"), column("key_topic" if "key_topic" in rows.columns else "topic")
    assert subject is Subject.TRANSACTIONS, subject
    return column("session"), column("txn")
