"""A sound run to explain, and results of reconciliation made up for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.ledger.literal_run import LiteralRun
from harness.ledger.rundir import RunDir, write_json


def plain(root: Path) -> LiteralRun:
    """Session 1 sends ten messages to partition 0, session 2 ten to partition 1."""
    run = LiteralRun(root)
    run.session(1)
    run.session(2)
    run.write(1, 10, 0)
    run.write(2, 10, 1)
    return run


def reconciled(folder: RunDir, **verdict: Any) -> RunDir:
    """Write the results of a run that lost records into its folder."""
    finding = {
        "anomaly": "lost", "topic": "orders", "partition": 0, "messages": ["producer-1.0-3"], "offsets": [3],
        "text": "producer-1.0-3 is gone.",
    }  # fmt: skip
    write_json(
        folder.reconciled,
        {
            "version": 1, "run_id": folder.run_id, "coverage": {"windows": []},
            "counts": {"attempted": 20, "acked": 20, "in_log": 18, "delivered": 18, "lost": 2, "late": 0, "redelivered": 4},
            "compared": {"lost": 20, "late": 20, "redelivered": 18},
            "findings": [finding],
        },
    )  # fmt: skip
    judged = {
        "verdict": "VIOLATED", "expected": "HELD", "guarantee": "at_least_once", "inconclusive": [],
        "violations": [{"anomaly": "lost", "count": 2, "reason": "acked is acked"}],
        "counted": [{"anomaly": "redelivered", "count": 4, "reason": "at least once"}],
    }  # fmt: skip
    write_json(folder.verdict, judged | verdict)
    rows = [
        {"anomaly": "lost", "messages": ["producer-1.0-3"], "evidence": [("acked", "yes")]},
        {"anomaly": "lost", "messages": ["producer-1.0-5", "producer-1.0-6"], "evidence": [("offset", "6")]},
        {"anomaly": "corrupted", "messages": None, "evidence": None},
    ]
    kinds = {
        "anomaly": pa.string(),
        "messages": pa.list_(pa.string()),
        "evidence": pa.map_(pa.string(), pa.string()),
    }
    folder.findings.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), folder.findings / "part.parquet")
    return folder
