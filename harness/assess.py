"""From a run folder to its verdict: reconcile, then judge. Needs no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.contracts import Mode
from harness.rundir import RunDir, write_json
from harness.verdict import Judgement, Settings, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assess(run: RunDir, spark: SparkSession) -> tuple[dict[str, Any], Judgement]:
    """What reconciliation found and the verdict on it; both are written into the run folder."""
    from harness.reconcile.job import reconcile  # a client worker never loads Spark

    manifest = run.read_manifest()
    reconciled = reconcile(run, spark)
    judgement = judge(reconciled, Mode(manifest["scenario"]["guarantee"]), Settings.of(manifest, reconciled))
    write_json(run.verdict, judgement.to_json())
    return reconciled, judgement
