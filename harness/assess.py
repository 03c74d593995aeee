"""From a run folder to its verdict: reconcile, then judge. Needs no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.contracts import Mode
from harness.room import names_full_disks
from harness.rundir import RunDir, write_json
from harness.verdict import Judgement, Settings, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assess(run: RunDir, spark: SparkSession) -> tuple[dict[str, Any], Judgement]:
    """What reconciliation found and the verdict on it; both are written into the run folder."""
    return assess_many([run], spark)[0]


@names_full_disks
def assess_many(runs: Sequence[RunDir], spark: SparkSession) -> list[tuple[dict[str, Any], Judgement]]:
    """The same for many runs, reconciled in one job."""
    from harness.reconcile.job import reconcile_many  # a client worker never loads Spark
    from harness.reconcile.places import publish

    assessed = []
    for run, reconciled in zip(runs, reconcile_many(runs, spark), strict=True):
        manifest = run.read_manifest()
        settings = Settings.of(manifest, reconciled)
        judgement = judge(reconciled, Mode(manifest["scenario"]["guarantee"]), settings)
        write_json(run.verdict, judgement.to_json())
        publish(run, run.verdict)
        assessed.append((reconciled, judgement))
    return assessed
