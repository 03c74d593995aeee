"""rewound: a reader saw a partition repeat or go backwards.

After a rebalance it is excused, and counted (E5-E7). The same applies after a rewind that the reader itself requested and
recorded, as an application does after an aborted transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from harness.reconcile.find.findings import HISTORY, LEDGER, STEP_MESSAGES, finding, when
from harness.reconcile.find.tables import StepTables
from harness.reconcile.screen.spaces import Space, Why

_BACK = "to_offset <= from_offset"


class Rewound:
    anomaly: ClassVar[str] = "rewound"
    asked_of: ClassVar[tuple[str, ...]] = (LEDGER, HISTORY)
    compared: ClassVar[tuple[str, ...]] = ("STEPS",)
    woken_by: ClassVar[Mapping[Space, Why]] = {Space.READING: Why.REPEATED}

    def of_steps(self, tables: StepTables) -> pl.DataFrame:
        return finding(
            tables.steps_named(_BACK), self.anomaly,
            messages=STEP_MESSAGES, offsets=["from_offset", "to_offset"], reader="reader_name", t="to_t",
            excuse="CASE WHEN excused THEN 'rebalance' END",
            evidence={"scope": pl.col("scope"), "back_by": "from_offset - to_offset", "from_t": "from_t", "to_t": "to_t"},
        )  # fmt: skip

    def explain(self, row: Mapping[str, Any]) -> str:
        before, after = row["offsets"]
        why = (
            "after a rebalance or its own rewind"
            if row.get("excuse")
            else "without a rebalance that excuses it"
        )
        return (
            f"{row.get('reader')} had got offset {before} of {row['topic']}/{row['partition']} and was then given offset "
            f"{after}, {when(row)}, {why}."
        )


finder_class = Rewound
