"""key_reordered: two messages with one key in the opposite order of their sends, across sessions or partitions.

Within one session and partition that is `reordered`. Across sessions of one partition the order of the log
decides. Across partitions the log has no order, and the order of deliveries to the group decides. See docs/anomalies.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.contracts import Outcome
from harness.reconcile.find.findings import LEDGER, finding, sql, when
from harness.reconcile.find.tables import KeyTables
from harness.reconcile.screen.spaces import Space, Why
from harness.reconcile.screen.summaries import CONCURRENT_NS

_KEY = ["run", "topic", "key"]
_KEPT = ["session", "seq", "sender", "producer", "incarnation", "t", "partition", "offset", "given"]
_SENT_BEFORE = (
    "producer = later_producer AND incarnation < later_incarnation "
    f"OR outcome = {int(Outcome.ACKED)} AND t_outcome + {CONCURRENT_NS} <= later_t"
)


class KeyReordered:
    anomaly: ClassVar[str] = "key_reordered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("KEYED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.KEY: Why.MISPLACED | Why.KEYS_CROSSED}

    def of_keys(self, tables: KeyTables) -> pl.DataFrame:
        keyed = tables.keyed
        later = keyed.select(*_KEY, *(pl.col(name).alias(f"later_{name}") for name in _KEPT))
        both = keyed.join(later, on=_KEY, how="inner")
        in_log = both.filter(sql(
            f"partition = later_partition AND session != later_session AND later_offset < offset AND ({_SENT_BEFORE})"
        )).with_columns(rule=pl.lit("two sessions"), tie=-pl.col("later_offset"))  # fmt: skip
        as_read = both.filter(sql(
            "partition != later_partition AND session = later_session AND seq < later_seq AND later_given < given"
        )).with_columns(rule=pl.lit("two partitions"), tie=-pl.col("later_given"))  # fmt: skip
        # If several later ones overtook it, the finding names the one that was sent last.
        found = pl.concat([in_log, as_read]).sort("later_t", "tie").unique(
            [*_KEY, "session", "seq"], keep="last", maintain_order=True
        )  # fmt: skip
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


finder_class = KeyReordered
