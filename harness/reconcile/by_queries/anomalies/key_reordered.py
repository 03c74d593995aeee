"""key_reordered: two messages with one key in the opposite order of their sends, across sessions or partitions.

Within one session and partition that is `reordered`. Across sessions of one partition the log shows it; across
partitions there is no order in the log, and what the key's readers were given first decides. See docs/anomalies.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from harness.contracts import Outcome
from harness.reconcile.blocks import CONCURRENT_NS, Space, Why
from harness.reconcile.by_queries.findings import LEDGER, finding, when
from harness.reconcile.by_queries.look import OURS
from harness.reconcile.by_queries.tables import MESSAGE, Tables

_KEYED = "attempted AND (in_log OR in_committed) AND key >= 0 AND intended_partition < 0"
_KEPT = (
    "session",
    "seq",
    "t",
    "t_outcome",
    "outcome",
    "partition",
    "offset",
    "sender",
    "producer",
    "incarnation",
    "given",
)
_LATER = ("later_sender", "later_seq", "later_offset", "later_partition", "rule")
_SENT_BEFORE = (
    "producer = later_producer AND incarnation < later_incarnation "
    f"OR outcome = {int(Outcome.ACKED)} AND t_outcome + {CONCURRENT_NS} <= later_t"
)


class KeyReordered:
    anomaly: ClassVar[str] = "key_reordered"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER,)
    compared: ClassVar[tuple[str, ...]] = ("KEYED",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.KEY: Why.MISPLACED | Why.KEYS_CROSSED}

    def find(self, tables: Tables) -> DataFrame:
        given = tables.to_group().where(OURS).groupBy(*MESSAGE).agg(f.expr("min(t) AS given"))
        keyed = (
            tables.named(tables.messages.where(_KEYED))
            .join(given, on=MESSAGE, how="left")
            .join(tables.lives(given.sparkSession), on=["run", "session"], how="left")
            .selectExpr("*", "topic_min AS topic", "partition_min AS partition", "offset_min AS offset")
            .select("run", "topic", "key", *_KEPT)
        )
        later = keyed.withColumnsRenamed({name: f"later_{name}" for name in _KEPT})
        both = keyed.join(later, on=["run", "topic", "key"], how="inner")
        in_log = both.where(
            f"partition = later_partition AND session != later_session AND later_offset < offset AND ({_SENT_BEFORE})"
        ).selectExpr("*", "'two sessions' AS rule", "struct(later_t, -later_offset AS tie) AS rank")
        as_read = both.where(
            "partition != later_partition AND session = later_session AND seq < later_seq AND later_given < given"
        ).selectExpr("*", "'two partitions' AS rule", "struct(later_t, -later_given AS tie) AS rank")
        found = (
            in_log.unionByName(as_read)
            .groupBy("run", "topic", "key", *_KEPT)
            .agg(f.expr(f"max_by(struct({', '.join(_LATER)}), rank) AS l"))
        )
        return found.selectExpr(*finding(
            self.anomaly,
            messages="array(sender || '-' || seq, l.later_sender || '-' || l.later_seq)",
            offsets="array(offset, l.later_offset)",
            evidence={"rule": "l.rule", "key": "key", "later_partition": "l.later_partition"},
        ))  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        first, second = row["messages"]
        evidence = row.get("evidence") or {}
        how = (
            f"stands before it in {row['topic']}/{row['partition']}: offset {row['offsets'][1]} against {row['offsets'][0]}"
            if evidence.get("rule") == "two sessions"
            else f"was given to the group first: it stands in partition {evidence.get('later_partition')}, the other one in "
            f"partition {row['partition']} of {row['topic']}"
        )
        return f"{first} and {second} have key k{evidence.get('key')}. {first} was sent first, {when(row)}; {second} {how}."


finder_class = KeyReordered
