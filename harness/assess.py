"""From a run folder to its verdict: reconcile, then judge. Needs no cluster."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from harness import packed
from harness.contracts import Mode
from harness.errors import OnceproofError
from harness.room import names_full_disks
from harness.rundir import RunDir, write_json
from harness.verdict import Judgement, Settings, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harness.reconcile.seal import Sealed


def assess(run: RunDir, spark: SparkSession) -> tuple[dict[str, Any], Judgement]:
    """What reconciliation found and the verdict on it; both are written into the run folder."""
    return assess_many([run], spark)[0]


def assess_each(
    runs: Sequence[RunDir], spark: SparkSession
) -> list[tuple[dict[str, Any], Judgement] | OnceproofError]:
    """Of each run the same, or why it cannot be read: one bad run does not keep the others from their verdicts."""
    from harness.reconcile.places import numbered, sealed_or_refused

    answers: dict[RunDir, tuple[dict[str, Any], Judgement] | OnceproofError] = {}
    good: dict[RunDir, Sealed] = {}
    for run, sealed in zip(runs, sealed_or_refused(runs, spark), strict=True):
        try:
            if isinstance(sealed, OnceproofError):
                raise sealed
            numbered([*good, run], [*good.values(), sealed])
        except OnceproofError as error:
            answers[run] = error
        else:
            good[run] = sealed
    try:
        assessed = assess_many([*good], spark, [*good.values()]) if good else []
    except OnceproofError:
        for run, one in good.items():  # which of them was it?
            try:
                answers |= {run: assess_many([run], spark, [one])[0]}
            except OnceproofError as error:
                answers[run] = error
    else:
        answers |= zip(good, assessed, strict=True)
    return [answers[run] for run in runs]


@names_full_disks
def assess_many(
    runs: Sequence[RunDir], spark: SparkSession, sealed: Sequence[Sealed] | None = None
) -> list[tuple[dict[str, Any], Judgement]]:
    """The same for many runs, reconciled in one job; `sealed`: what sealing saw, where that was done before."""
    from harness.reconcile.job import reconcile_many  # a client worker never loads Spark

    with ExitStack() as reading:
        # A lock is an open file, and they are needed for other things too. A run without one that is packed meanwhile
        # fails the job; it is never judged by a part of its tables.
        for run in runs[: resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4]:
            reading.enter_context(packed.in_use(run))
        assessed = [
            (reconciled, _judged(run, reconciled))
            for run, reconciled in zip(runs, reconcile_many(runs, spark, sealed=sealed), strict=True)
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
