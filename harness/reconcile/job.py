"""The Spark entry: run folders in, findings.parquet and reconciled.json out. One run or many, in one job.

First the ledgers are screened block by block in one pass (harness.reconcile.screen). Where a block is not sound, its
rows, and only those, go to the finders that its reasons wake, all in one query. When that query fails, each finder
runs by itself and the one that raised is named: it never hides the others.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harness import registry
from harness.contracts import Finder
from harness.reconcile.blocks import Count, Facts
from harness.reconcile.coverage import coverage, seconds
from harness.reconcile.findings import COLUMNS, LEDGER
from harness.reconcile.look import choose
from harness.reconcile.screen import Screened, facts, screen
from harness.reconcile.seal import Sealed, seal
from harness.reconcile.session import for_few_rows
from harness.reconcile.stitch import Doubts, doubts
from harness.reconcile.tables import Tables, derive, read
from harness.reconcile.times import latency_and_throughput, recovery, timeline, unavailable_s_max
from harness.rundir import RunDir, write_json

VERSION = 1
WORST = 5  # findings of each kind that are told in full
OUTCOMES = (Count.ATTEMPTED, Count.ACKED, Count.REJECTED, Count.UNKNOWN)
_NO_FINDINGS = pa.schema([("run_id", pa.string()), ("anomaly", pa.string())])

Rows = list[dict[str, Any]]
Crashed = dict[str, str]


def all_finders(asked_of: str = LEDGER) -> list[Finder]:
    every: list[Finder] = [registry.load("finder", name)() for name in registry.names("finder")]
    return [finder for finder in every if asked_of in finder.asked_of]


def reconcile(run: RunDir, spark: SparkSession, finders: Sequence[Finder] | None = None) -> dict[str, Any]:
    """Seal the ledger, ask every finder, write the results and give what reconciled.json holds."""
    return reconcile_many([run], spark, finders)[0]


def reconcile_many(
    runs: Sequence[RunDir], spark: SparkSession, finders: Sequence[Finder] | None = None
) -> list[dict[str, Any]]:
    """The same for many runs at once, in their order: the cost of a query is paid once."""
    began = time.monotonic()
    chosen = list(all_finders() if finders is None else finders)
    sealed = [seal(run) for run in runs]
    own = read(spark, {run.tables: one for run, one in zip(runs, sealed, strict=True)})
    known = facts(own, sealed)
    screened = screen(own, known)
    crashed: Crashed = {}
    rows = _look(runs, spark, own, doubts(screened, known, sealed), chosen, crashed)
    sound = [finder for finder in chosen if finder.anomaly not in crashed]
    results = []
    for run, one, fact in zip(runs, sealed, known, strict=True):
        mine = [row for row in rows if row["run"] == one.run]
        result = _result(one, sound, fact, screened.of(one.run), mine, crashed)
        result["seconds"] = round(time.monotonic() - began, 3)
        write_json(run.reconciled, result)
        results.append(result)
    return results


def woken(finders: Sequence[Finder], doubtful: Doubts) -> list[Finder]:
    """Those finders that have a reason to look closer."""
    reasons = doubtful.reasons()
    return [x for x in finders if any(reasons[space] & why for space, why in x.woken_by.items())]


def _look(
    runs: Sequence[RunDir],
    spark: SparkSession,
    own: Mapping[str, DataFrame],
    doubtful: Doubts,
    finders: Sequence[Finder],
    crashed: Crashed,
) -> Rows:
    """What finders find in the blocks that are not sound; all findings are written, the worst come back."""
    if not doubtful.any:
        _put_findings(runs, None)
        return []
    chosen = choose(spark, own, doubtful)
    tables = derive(own, chosen, strange=doubtful.screened.count(Count.STRANGE) > 0)
    try:
        with for_few_rows(spark):
            return _find(runs, spark, tables, woken(finders, doubtful), crashed)
    finally:
        tables.unpersist()
        chosen.unpersist()


def _result(
    sealed: Sealed, finders: list[Finder], known: Facts, screened: Screened, rows: Rows, crashed: Crashed
) -> dict[str, Any]:
    found = {(row["anomaly"], row["excuse"]): int(row["n"]) for row in rows}
    excused: dict[str, dict[str, int]] = {}
    for (anomaly, excuse), n in found.items():
        if excuse is not None:
            excused.setdefault(anomaly, {})[excuse] = n
    names = [finder.anomaly for finder in finders]
    explain = {finder.anomaly: finder.explain for finder in finders}
    seen = coverage(sealed, known, screened)
    for window, recovered_s in zip(seen["windows"], recovery(screened, seen["windows"]), strict=True):
        window["recovered_s"] = recovered_s
    return {
        "version": VERSION,
        "run_id": sealed.run_id,
        "scenario": sealed.scenario,
        "counts": {count.name.lower(): screened.count(count) for count in OUTCOMES}
        | {"in_log": sealed.in_log, "in_log_uncommitted": sealed.in_log_uncommitted}
        | {"delivered": screened.count(Count.DELIVERIES)}
        | {name: sum(n for (anomaly, _), n in found.items() if anomaly == name) for name in names},
        "excused": excused,
        "compared": {
            finder.anomaly: sum(screened.count(Count[c]) for c in finder.compared) for finder in finders
        },
        "crashed": crashed,
        "unavailable_s_max": unavailable_s_max(screened),
        **latency_and_throughput(screened),
        "findings": [_told(row, explain[row["anomaly"]], sealed.zero_ns) for row in rows],
        "coverage": seen,
        "timeline": timeline(screened),
    }


# --- finding --------------------------------------------------------------------------------------


def _find(
    runs: Sequence[RunDir], spark: SparkSession, tables: Tables, finders: Sequence[Finder], crashed: Crashed
) -> Rows:
    """Write all findings; the worst few of each kind come back, each with the number `n` of its kind."""
    frames = _planned(finders, tables, crashed)
    draft = runs[0].path / f".findings.{os.getpid()}"
    try:
        try:
            rows = _write(spark, tables, list(frames.values()), draft)
        except Exception:
            sound = {name: frame for name, frame in frames.items() if _works(name, frame, crashed)}
            if len(sound) == len(frames):
                raise  # no finder is to blame
            rows = _write(spark, tables, list(sound.values()), draft)
        _put_findings(runs, draft)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return rows


def _planned(finders: Sequence[Finder], tables: Tables, crashed: Crashed) -> dict[str, DataFrame]:
    frames = {}
    for finder in finders:
        try:
            frames[finder.anomaly] = finder.find(tables).select(*COLUMNS)
        except Exception as error:  # noqa: BLE001  a finder may raise anything; it must not hide the others
            crashed[finder.anomaly] = _reason(error)
    return frames


def _works(name: str, frame: DataFrame, crashed: Crashed) -> bool:
    try:
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:  # noqa: BLE001  recorded under the finder's name, and the verdict is not HELD
        crashed[name] = _reason(error)
        return False
    return True


def _write(spark: SparkSession, tables: Tables, frames: Sequence[DataFrame], draft: Path) -> Rows:
    """Write all findings, a folder a run; the worst few of each kind come back."""
    if not frames:
        return []
    found = _dressed(reduce(DataFrame.unionByName, frames), tables)
    found.write.mode("overwrite").partitionBy("folder").parquet(str(draft))
    ranked = spark.read.parquet(str(draft)).selectExpr(
        "*", "count(1) OVER (PARTITION BY run, anomaly, excuse) AS n",
        "row_number() OVER (PARTITION BY run, anomaly, excuse ORDER BY t NULLS LAST, partition, offsets) AS rank",
    )  # fmt: skip
    rows = [row.asDict(recursive=True) for row in ranked.where(f"rank <= {WORST}").collect()]
    return sorted(rows, key=lambda row: (row["anomaly"], row["excuse"] or "", row["rank"]))


def _put_findings(runs: Sequence[RunDir], draft: Path | None) -> None:
    """Move each run's findings to its place; a run without any gets an empty table: it was looked for."""
    for run in runs:
        made = draft / f"folder={run.path.parent.name}%2F{run.path.name}" if draft else None
        shutil.rmtree(run.findings, ignore_errors=True)
        if made is not None and made.is_dir():
            shutil.move(made, run.findings)
        else:
            run.findings.mkdir()
            pq.write_table(_NO_FINDINGS.empty_table(), run.findings / "none.parquet")


def _dressed(found: DataFrame, tables: Tables) -> DataFrame:
    """With the topic's name, and the fault window that the finding's time falls into."""
    spans = tables.windows.groupBy("run").agg(
        f.expr("sort_array(collect_list(struct(opened, closed, window))) AS spans")
    )
    about = tables.runs.select("run", "run_id", "topic_name").join(spans, on="run", how="left")
    # Parquet files as many as their bytes need: usually one.
    return found.join(f.broadcast(about), on="run", how="left").selectExpr(
        "run_id", "run_id AS folder", *(name for name in COLUMNS if name != "topic"),
        "CASE WHEN topic = 0 THEN topic_name ELSE 'topic ' || topic END AS topic",
        "get(filter(spans, s -> s.opened <= t AND t <= s.closed), 0).window AS window",
    ).hint("rebalance")  # fmt: skip


def _told(
    row: Mapping[str, Any], explain: Callable[[Mapping[str, Any]], str], zero_ns: int
) -> dict[str, Any]:
    """A finding in full, as reconciled.json has it."""
    told = {
        name: row[name]
        for name in ("anomaly", "topic", "partition", "messages", "offsets", "sender", "reader")
    }
    evidence = {k: v for k, v in (row["evidence"] or {}).items() if v is not None}
    told |= {"t_s": seconds(row["t"], zero_ns), "window": row["window"], "evidence": evidence}
    if row["excuse"] is not None:
        told["excuse"] = row["excuse"]
    return told | {"text": explain(told)}


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:500]
