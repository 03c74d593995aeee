"""key_reordered: two messages with one key in the opposite order of their sends, across sessions or partitions.

Within one session and partition that is `reordered`. Across sessions of one partition the order of the log
decides. Across partitions the log has no order, and the order of deliveries to the group decides. See docs/anomalies.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import polars as pl

from harness.contracts import Outcome
from harness.reconcile.find.findings import LEDGER, finding, sql, when
from harness.reconcile.find.tables import KeyTables
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.summaries import CONCURRENT_NS

_KEY = ["run", "topic", "key"]
# Columns that the conditions compare; the others are looked up for the pairs that are left.
_COMPARED = ["session", "seq", "producer", "incarnation", "t", "partition", "offset", "given"]
_NAMED = ["sender", "seq", "session", "partition", "offset"]
_SENT_BEFORE = (
    "producer = later_producer AND incarnation < later_incarnation "
    f"OR outcome = {int(Outcome.ACKED)} AND t_outcome + {CONCURRENT_NS} <= later_t"
)


class KeyReordered:
    anomaly: ClassVar[str] = "key_reordered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("KEYED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.KEY: Why.MISPLACED | Why.KEYS_CROSSED}

    # Pairs of messages that are compared at once, about 200 bytes each. All pairs of a key that has thousands of messages in
    # doubt would not fit into memory.
    most_pairs: ClassVar[int] = 1_000_000

    def of_keys(self, tables: KeyTables) -> pl.DataFrame:
        keyed = tables.keyed.with_row_index("place")
        in_log = _overtaken(
            keyed, "partition", f"session != later_session AND later_offset < offset AND ({_SENT_BEFORE})",
            rule="two sessions", tie="later_offset", at_once=self.most_pairs,
        )  # fmt: skip
        as_read = _overtaken(
            keyed, "session", "partition != later_partition AND seq < later_seq AND later_given < given",
            rule="two partitions", tie="later_given", at_once=self.most_pairs,
        )  # fmt: skip
        pairs = _latest(pl.concat([in_log, as_read]))
        later = keyed.select(pl.col("place").alias("later_place"), *_renamed(_NAMED))
        found = (
            pairs.select("place", "later_place", "rule").join(keyed, on="place").join(later, on="later_place")
        )
        return finding(
            found, self.anomaly,
            messages=["sender || '-' || seq", "later_sender || '-' || later_seq"], offsets=["offset", "later_offset"],
            evidence={"rule": "rule", "key": pl.col("key"), "later_partition": "later_partition"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        first, second = row["messages"]
        evidence = row.get("evidence") or {}
        how = (
            f"is before it in {row['topic']}/{row['partition']}: offset {row['offsets'][1]} against {row['offsets'][0]}"
            if evidence.get("rule") == "two sessions"
            else f"was given to the group first: it is in partition {evidence.get('later_partition')}, the other one in "
            f"partition {row['partition']} of {row['topic']}"
        )
        return f"{first} and {second} have key k{evidence.get('key')}. {first} was sent first, {when(row)}; {second} {how}."


def _overtaken(
    keyed: pl.DataFrame, within: str, condition: str, *, rule: str, tie: str, at_once: int
) -> pl.DataFrame:
    """Return for each message the latest one with its key that overtook it, among those with the same value of `within`.

    Pairs are made and compared piece by piece, so that memory does not grow with the square of the messages of a key.
    """
    on = [*_KEY, within]
    compared = keyed.select("place", *_KEY, *_COMPARED, "outcome", "t_outcome")
    pairs = pl.len().over(on).cast(pl.Int64).cum_sum()
    pieces = compared.with_columns(piece=pairs // at_once).partition_by("piece", include_key=False)
    others = [name for name in _COMPARED if name != within]
    later = compared.select(*on, pl.col("place").alias("later_place"), *_renamed(others))
    chosen = ["place", "later_place", "later_t", pl.col(tie).neg().alias("tie"), pl.lit(rule).alias("rule")]
    return pl.concat(
        _latest(piece.join(later, on=on, how="inner").filter(sql(condition)).select(chosen))
        for piece in pieces or [compared]
    )


def _latest(pairs: pl.DataFrame) -> pl.DataFrame:
    """If several later ones overtook a message, keep the one that was sent last; of equal ones the one that came first."""
    return pairs.sort("later_t", "tie").unique("place", keep="last", maintain_order=True)


def _renamed(names: Iterable[str]) -> list[pl.Expr]:
    return [pl.col(name).alias(f"later_{name}") for name in names]


finder_class = KeyReordered
