"""From a run folder to its verdict: reconcile, then judge. Needs no cluster."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from harness import packed
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

    with ExitStack() as reading:
        # A lock is an open file, and they are needed for other things too. A run without one that is packed meanwhile
        # fails the job; it is never judged by a part of its tables.
        for run in runs[: resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4]:
            reading.enter_context(packed.in_use(run))
        assessed = [
            (reconciled, _judged(run, reconciled))
            for run, reconciled in zip(runs, reconcile_many(runs, spark), strict=True)
        ]
    for run in runs:
        packed.drop_tables(run)
    return assessed


def _judged(run: RunDir, reconciled: dict[str, Any]) -> Judgement:
    """The verdict, which is written into the run folder."""
    from harness.reconcile.places import publish

    manifest = run.read_manifest()
    settings = Settings.of(manifest, reconciled)
    judgement = judge(reconciled, Mode(manifest["scenario"]["guarantee"]), settings)
    write_json(run.verdict, judgement.to_json())
    publish(run, run.verdict)
    return judgement
