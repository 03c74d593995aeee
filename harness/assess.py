"""From a run folder to its verdict: reconcile, then judge. Needs no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.contracts import Mode
from harness.room import needed_in, scratch_folders
from harness.rundir import RunDir, write_json
from harness.verdict import Judgement, Settings, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assess(run: RunDir, spark: SparkSession) -> tuple[dict[str, Any], Judgement]:
    """What reconciliation found and the verdict on it; both are written into the run folder."""
    return assess_many([run], spark)[0]


def assess_many(runs: Sequence[RunDir], spark: SparkSession) -> list[tuple[dict[str, Any], Judgement]]:
    """The same for many runs, reconciled in one job."""
    from harness.reconcile.job import reconcile_many  # a client worker never loads Spark

    with needed_in(*(run.path for run in runs), *scratch_folders()):
        return _assessed(runs, reconcile_many(runs, spark))


def _assessed(
    runs: Sequence[RunDir], results: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, Any], Judgement]]:
    from harness.reconcile.places import publish

    assessed = []
    for run, reconciled in zip(runs, results, strict=True):
        manifest = run.read_manifest()
        settings = Settings.of(manifest, reconciled)
        judgement = judge(reconciled, Mode(manifest["scenario"]["guarantee"]), settings)
        write_json(run.verdict, judgement.to_json())
        publish(run, run.verdict)
        assessed.append((reconciled, judgement))
    return assessed
