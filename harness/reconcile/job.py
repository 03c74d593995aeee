"""The reconciliation of one run or many: run folders in, findings.parquet and reconciled.json out.

First one pass screens the ledgers block by block (harness.reconcile.screen.screen). If blocks are not sound, their rows, and
only those, go to the finders that the reasons wake (harness.reconcile.closer_look); each finder is asked separately.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from harness import registry
from harness.contracts import Finder
from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.closer_look import Looked, look
from harness.reconcile.find.findings import LEDGER, PIPELINE
from harness.reconcile.pictures.pictures import write_pictures
from harness.reconcile.results import result_of, write_findings
from harness.reconcile.run_locations import (
    DistantRun,
    need_whole,
    numbered,
    place_of,
    publish,
    sealed_together,
)
from harness.reconcile.screen.facts import facts
from harness.reconcile.screen.screen import screen
from harness.reconcile.seal.schema import LARGE
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.doubts import Doubts, doubts
from harness.reconcile.spark.sizes import USUAL, Sizes
from harness.reconcile.spark.source import Files, Source, SparkTables
from harness.reconcile.spark.stored_tables import read, read_small


def all_finders(asked_of: str = LEDGER) -> list[Finder]:
    every: list[Finder] = [registry.load("finder", name)() for name in registry.names("finder")]
    asked = (asked_of, PIPELINE) if asked_of == LEDGER else (asked_of,)
    return [finder for finder in every if set(asked) & set(finder.asked_of)]


def reconcile(run: RunDir, spark: SparkSession, finders: Sequence[Finder] | None = None) -> dict[str, Any]:
    """Seal the ledger, ask the finders, write the results, and return the content of reconciled.json."""
    return reconcile_many([run], spark, finders)[0]


def reconcile_many(
    runs: Sequence[RunDir],
    spark: SparkSession,
    finders: Sequence[Finder] | None = None,
    sealed: Sequence[Sealed] | None = None,
    sizes: Sizes = USUAL,
) -> list[dict[str, Any]]:
    """Reconcile many runs at once and return their results in order; a pass of Spark costs the same for one run or many.

    `sealed`: the results of sealing, if the runs are sealed already.
    """
    began = time.monotonic()
    chosen = list(all_finders() if finders is None else finders)
    sealed = sealed_together(runs, spark) if sealed is None else sealed
    by_number = numbered(runs, sealed)
    source = _source(runs, sealed, spark)
    small = read_small({run.tables: one for run, one in zip(runs, sealed, strict=True)})
    known = facts(small, sealed)
    records = sum(one.rows[name] for one in sealed for name in LARGE)
    screened = screen(source, known, records=records, sizes=sizes)
    doubtful = doubts(screened, known, sealed)
    looked = Looked()
    if doubtful.any:
        looked = look(spark, source, small, sealed, known, doubtful, woken(chosen, doubtful), sizes)
    rows = write_findings(by_number, sealed, looked.findings)
    sound = [finder for finder in chosen if finder.anomaly not in looked.crashed]
    results = []
    for run, one, fact in zip(runs, sealed, known, strict=True):
        mine = [row for row in rows if row["run"] == one.run]
        concerned = [finder for finder in sound if one.transform or finder.asked_of != (PIPELINE,)]
        result = result_of(one, concerned, fact, screened.of(one.run), mine, looked)
        publish(run, run.findings)
        result["seconds"] = round(time.monotonic() - began, 3)
        write_json(run.reconciled, result)
        publish(run, run.reconciled)
        write_pictures(run, one, small, result)
        publish(run, run.pictures)
        results.append(result)
    return results


def _source(runs: Sequence[RunDir], sealed: Sequence[Sealed], spark: SparkSession) -> Source:
    """Return the source of the rows: tasks open tables of this machine themselves; Spark reads all others."""
    if not any(isinstance(run, DistantRun) for run in runs):
        return Files(spark, {one.run: run.tables for run, one in zip(runs, sealed, strict=True)})
    frames = read(spark, {f"{place_of(run)}/tables": one for run, one in zip(runs, sealed, strict=True)})
    need_whole(frames, runs, sealed)
    return SparkTables(frames)


def woken(finders: Sequence[Finder], doubtful: Doubts) -> list[Finder]:
    """Return the finders that a reason in the doubts wakes."""
    reasons = doubtful.reasons()
    return [x for x in finders if any(reasons[space] & why for space, why in x.woken_by.items())]
