"""Assessment of run folders: reconcile, then judge. Needs no cluster."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from harness.contracts import Mode
from harness.errors import OnceproofError
from harness.ledger import packing
from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.spark.sizes import USUAL, Sizes
from harness.runtime.disk_space import names_full_disks
from harness.verdict import Judgement, Settings, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harness.reconcile.seal.sealed import Sealed


def assess(run: RunDir, spark: SparkSession) -> tuple[dict[str, Any], Judgement]:
    """Reconcile and judge a run; return both results, which are also written into the run folder."""
    return assess_many([run], spark)[0]


Assessed = tuple[dict[str, Any], Judgement]
Failure = TypeVar("Failure", bound=Exception)


def assess_each(
    runs: Sequence[RunDir], spark: SparkSession, catch: type[Failure]
) -> list[Assessed | Failure]:
    """Assess each run; return its results, or the error that prevented a verdict: one bad run does not hide the others.

    All runs that can be sealed are reconciled in one job. If that fails with an error of the class `catch`, each is
    reconciled by itself.
    """
    from harness.reconcile.run_locations import need_another, sealed_or_refused

    answers: dict[int, Assessed | Failure] = {}  # by place in `runs`
    good: dict[int, Sealed] = {}
    numbers: dict[int, RunDir] = {}
    for place, sealed in enumerate(sealed_or_refused(runs, spark)):
        try:
            if isinstance(sealed, OnceproofError):
                raise sealed
            need_another(numbers, runs[place], sealed)
        except catch as error:
            answers[place] = error
        else:
            good[place] = sealed
    for together in [[*good], *([place] for place in good)]:
        if all(place in answers for place in together):
            continue
        try:
            assessed = assess_many(
                [runs[place] for place in together], spark, [good[place] for place in together]
            )
            answers |= dict(zip(together, assessed, strict=True))
        except catch as error:
            if len(together) == 1:
                answers[together[0]] = error
    return [answers[place] for place in range(len(runs))]


@names_full_disks
def assess_many(
    runs: Sequence[RunDir],
    spark: SparkSession,
    sealed: Sequence[Sealed] | None = None,
    sizes: Sizes = USUAL,
) -> list[tuple[dict[str, Any], Judgement]]:
    """Assess many runs, reconciled in one job; `sealed`: the results of sealing, if the runs are sealed already."""
    from harness.reconcile.job import reconcile_many  # a client worker never loads Spark

    with ExitStack() as reading:
        # A lock is an open file, and the number of open files is limited, so not every run has one. If a run without a lock is
        # packed meanwhile, the job fails; no run is ever judged by a part of its tables.
        for run in runs[: resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4]:
            reading.enter_context(packing.in_use(run))
        results = reconcile_many(runs, spark, sealed=sealed, sizes=sizes)
        assessed = [
            (reconciled, _judged(run, reconciled)) for run, reconciled in zip(runs, results, strict=True)
        ]
    for run in runs:
        packing.drop_tables(run)
    return assessed


def _judged(run: RunDir, reconciled: dict[str, Any]) -> Judgement:
    """Judge the run and write the verdict into its folder."""
    from harness.reconcile.run_locations import publish

    manifest = run.read_manifest()
    settings = Settings.of(manifest, reconciled)
    judgement = judge(reconciled, Mode(manifest["scenario"]["guarantee"]), settings)
    write_json(run.verdict, judgement.to_json())
    publish(run, run.verdict)
    return judgement
