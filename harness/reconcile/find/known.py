"""Small tables about runs that finders need besides the rows in doubt: names, isolations, bounds and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from harness.reconcile.find.findings import sql
from harness.reconcile.screen.transaction_fates import TRANSACTION, fates_by_events
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.sealed import Sealed

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


@dataclass(frozen=True)
class Known:
    """Small tables about the runs besides the rows in doubt, the same for every share."""

    senders: pl.DataFrame  # run, session, sender (<producer>.<incarnation>), producer, incarnation
    readers: (
        pl.DataFrame
    )  # run, reader, reader_name, isolation, observes (an observer, not a member of the group)
    runs: pl.DataFrame  # run, reads_committed (its group does), unchanged (its number of partitions)
    bounds: pl.DataFrame  # as in harness.reconcile.seal.schema
    # run, session, txn, fate: committed (reported, or proven by E2), aborted (certainly not committed) or unknown; asked_at:
    # when its commit was requested, so it cannot have been committed before (0: unknown).
    fates: pl.DataFrame

    @classmethod
    def of(cls, sealed: Sequence[Sealed], small: Mapping[str, pa.Table], proven: pa.Table | None) -> Known:
        """Make the tables. `proven`: run, session, txn of transactions of which a read_committed reader got a record."""
        return cls(
            senders_table(
                (one.run, s.session, s.producer, s.incarnation) for one in sealed for s in one.sessions
            ),
            readers_table(row for one in sealed for row in _readers(one)),
            runs_table(
                (one.run, one.group_isolation == "read_committed", one.topic_unchanged) for one in sealed
            ),
            table_of(small["bounds"]),
            fates_of(
                table_of(fates_by_events(small["transactions"])),
                table_of(proven) if proven is not None else None,
            ),
        )

    def named(self, rows: pl.DataFrame, session: str = "session", sender: str = "sender") -> pl.DataFrame:
        """Return the rows with the name of their sender; a session without a session event is named by its number."""
        names = self.senders.select("run", pl.col("session").alias(session), pl.col("sender").alias(sender))
        number = pl.format("session {}", pl.col(session))
        return rows.join(names, on=["run", session], how="left").with_columns(
            pl.col(sender).fill_null(number)
        )


_FATE = (
    f"CASE WHEN committed THEN '{COMMITTED}' WHEN aborted OR NOT asked THEN '{ABORTED}' "
    f"WHEN proven THEN '{COMMITTED}' ELSE '{UNKNOWN}' END"
)


def fates_of(transactions: pl.DataFrame, proven: pl.DataFrame | None) -> pl.DataFrame:
    """Return the fate of each transaction: aborted if its commit was never requested, or an abort was acked."""
    # E2: a transaction of unknown end is committed if a read_committed reader got a record of it.
    found = transactions.select(TRANSACTION).clear() if proven is None else proven.unique()
    asked = transactions.join(found.with_columns(proven=pl.lit(True)), on=TRANSACTION, how="left")
    return asked.select(*TRANSACTION, sql(_FATE).alias("fate"), "asked_at")


def senders_table(rows: Iterable[tuple[int, int, str, int]]) -> pl.DataFrame:
    """Return run, session, sender, producer, incarnation for (run, session, producer, incarnation)."""
    schema = {"run": pl.Int64, "session": pl.Int64, "producer": pl.String, "incarnation": pl.Int32}
    made = pl.DataFrame(list(rows), schema=schema, orient="row")
    return made.with_columns(sender=pl.format("{}.{}", "producer", "incarnation"))


def readers_table(rows: Iterable[tuple[int, int, str, str, bool]]) -> pl.DataFrame:
    schema = {
        "run": pl.Int64, "reader": pl.Int32, "reader_name": pl.String, "isolation": pl.String, "observes": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def runs_table(rows: Iterable[tuple[int, bool, bool]]) -> pl.DataFrame:
    schema = {"run": pl.Int64, "reads_committed": pl.Boolean, "unchanged": pl.Boolean}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def _readers(sealed: Sealed) -> Iterable[tuple[int, int, str, str, bool]]:
    observed = {one.reader: one.isolation for one in sealed.observers}
    for number, name in enumerate(sealed.reader_names):
        isolation = observed.get(number, sealed.group_isolation)
        yield sealed.run, number, name, isolation, number in observed


def table_of(rows: pa.Table) -> pl.DataFrame:
    made = pl.from_arrow(rows)
    assert isinstance(made, pl.DataFrame)
    return made


def without_rows(table: str) -> pl.DataFrame:
    return table_of(SCHEMAS[table].empty_table())
