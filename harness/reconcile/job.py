"""The Spark entry: one run folder in, findings.parquet and reconciled.json out. Only this file collects.

Finders describe what they look for; here all of them run as one query, so that what they share is computed
once. When that query fails, each runs by itself and the one that raised is named: it never hides the others.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from harness import registry
from harness.contracts import Finder
from harness.reconcile import tables as tables_module
from harness.reconcile.coverage import coverage, numbers, rare_events, seconds
from harness.reconcile.findings import COLUMNS
from harness.reconcile.seal import Notes, seal
from harness.reconcile.tables import Tables
from harness.reconcile.timeline import buckets, timeline, totals
from harness.rundir import RunDir, write_json

VERSION = 1
WORST = 5  # findings of each kind that are told in full
COUNTS = ("attempted", "acked", "rejected", "unknown", "in_log", "delivered", "in_log_uncommitted")

Rows = list[dict[str, Any]]
Crashed = dict[str, str]


def all_finders() -> list[Finder]:
    return [registry.load("finder", name)() for name in registry.names("finder")]


def reconcile(run: RunDir, spark: SparkSession, finders: Sequence[Finder] | None = None) -> dict[str, Any]:
    """Seal the ledger, ask every finder, write the results and give what reconciled.json holds."""
    began = time.monotonic()
    notes = seal(run)
    tables = tables_module.load(spark, run.tables)
    chosen = list(all_finders() if finders is None else finders)
    try:
        result = _reconcile(run, spark, tables, chosen, notes)
    finally:
        tables.unpersist()
    result["seconds"] = round(time.monotonic() - began, 3)
    write_json(run.reconciled, result)
    return result


def _reconcile(
    run: RunDir, spark: SparkSession, tables: Tables, finders: list[Finder], notes: Notes
) -> dict[str, Any]:
    crashed: Crashed = {}
    frames = _planned(finders, tables, crashed)
    with ThreadPoolExecutor(3) as pool:
        # Planning one query while another runs: on two cores that is a third of the time.
        found = pool.submit(_find, run, spark, tables, frames, crashed)
        lines = pool.submit(_collect, buckets(tables))
        events = pool.submit(_collect, rare_events(tables).unionByName(_facts(tables), allowMissingColumns=True))
        asked = _numbers(tables, frames, crashed)
        rows = found.result()
        facts = events.result()
        spans = lines.result()
    about = next(row for row in facts if row["run_id"] is not None)
    value = {row["name"]: row["value"] for row in asked if row["value"] is not None}
    names = [finder.anomaly for finder in finders if finder.anomaly not in crashed]
    found_of = {(row["anomaly"], row["excuse"]): int(row["n"]) for row in rows}
    counts = {name: sum(n for (anomaly, _), n in found_of.items() if anomaly == name) for name in names}
    excused: dict[str, dict[str, int]] = {}
    for (anomaly, excuse), n in sorted(found_of.items(), key=str):
        if excuse is not None:
            excused.setdefault(anomaly, {})[excuse] = n
    explain = {finder.anomaly: finder.explain for finder in finders}
    return {
        "version": VERSION,
        "run_id": about["run_id"],
        "scenario": about["scenario"],
        "counts": {name: int(value.get(name, 0)) for name in COUNTS} | counts,
        "excused": excused,
        "compared": {name: int(value.get(f"compared {name}", 0)) for name in names},
        "crashed": crashed,
        "unavailable_s_max": round(value.get("unavailable_s_max", 0.0), 3),
        "latency_ms": {p: round(value.get(f"{p}_ms", 0.0), 3) for p in ("p50", "p99", "max")},
        "throughput_per_s": round(value.get("throughput_per_s", 0.0), 1),
        "findings": [_told(row, explain[row["anomaly"]], about["zero_ns"]) for row in rows],
        "coverage": coverage([row for row in facts if row["fields"] is not None], value, notes, about["zero_ns"]),
        "timeline": timeline(spans),
    }


# --- finders --------------------------------------------------------------------------------------


def _planned(finders: list[Finder], tables: Tables, crashed: Crashed) -> dict[str, tuple[DataFrame, DataFrame]]:
    """Each finder's findings and its number of compared items, not computed yet."""
    frames = {}
    for finder in finders:
        name = finder.anomaly
        try:
            compared = finder.compared(tables).select(
                "run", f.lit(f"compared {name}").alias("name"), f.col("n").cast("double").alias("value")
            )
            frames[name] = (finder.find(tables).select(*COLUMNS), compared)
        except Exception as error:  # noqa: BLE001  a finder may raise anything; it must not hide the others
            crashed[name] = _reason(error)
    return frames


def _find(
    run: RunDir,
    spark: SparkSession,
    tables: Tables,
    frames: Mapping[str, tuple[DataFrame, DataFrame]],
    crashed: Crashed,
) -> Rows:
    """Write all findings; the worst few of each kind come back, each with the number `n` of its kind."""
    draft = run.path / f".findings.{os.getpid()}"

    def write(found: Mapping[str, DataFrame]) -> None:
        _dressed(reduce(DataFrame.unionByName, found.values()), tables).write.mode("overwrite").parquet(str(draft))

    try:
        _together_or_one_by_one({name: find for name, (find, _) in frames.items()}, write, crashed)
        if not draft.exists():
            return []
        if run.findings.is_dir():
            shutil.rmtree(run.findings)
        else:
            run.findings.unlink(missing_ok=True)
        draft.rename(run.findings)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    same_kind = Window.partitionBy("run", "anomaly", "excuse")
    earliest = same_kind.orderBy(f.col("t").asc_nulls_last(), "partition", "offsets")
    return _collect(
        spark.read.parquet(str(run.findings))
        .withColumns({"rank": f.row_number().over(earliest), "n": f.count(f.lit(1)).over(same_kind)})
        .where(f.col("rank") <= WORST)
        .orderBy("run", "anomaly", "excuse", "rank")
    )


def _numbers(
    tables: Tables, frames: Mapping[str, tuple[DataFrame, DataFrame]], crashed: Crashed
) -> Rows:
    asked: Rows = []

    def collect(compared: Mapping[str, DataFrame]) -> None:
        rows = _collect(reduce(DataFrame.unionByName, [numbers(tables), totals(tables), *compared.values()]))
        asked[:] = rows

    _together_or_one_by_one({name: compared for name, (_, compared) in frames.items()}, collect, crashed)
    return asked


def _together_or_one_by_one(
    frames: Mapping[str, DataFrame], act: Callable[[Mapping[str, DataFrame]], None], crashed: Crashed
) -> None:
    """Do it with all frames at once; if that fails, find out which ones raise, and do it with the others."""
    try:
        act(frames)
    except Exception:
        sound = {}
        for name, frame in frames.items():
            try:
                frame.write.format("noop").mode("overwrite").save()
                sound[name] = frame
            except Exception as error:  # noqa: BLE001  recorded under the finder's name, and the verdict is not HELD
                crashed[name] = _reason(error)
        if len(sound) == len(frames):
            raise  # no finder is to blame
        if sound:
            act(sound)


def _dressed(found: DataFrame, tables: Tables) -> DataFrame:
    """With the topic's name, and the fault window that the finding's time falls into."""
    spans = tables.windows.groupBy("run").agg(
        f.sort_array(f.collect_list(f.struct("opened", "closed", "window"))).alias("spans")
    )
    about = tables.runs.select("run", "run_id", "topic_name").join(spans, on="run", how="left")
    inside = f.filter("spans", lambda s: (s["opened"] <= f.col("t")) & (f.col("t") <= s["closed"]))
    topic = f.when(f.col("topic") == 0, f.col("topic_name")).otherwise(f.concat(f.lit("topic "), f.col("topic")))
    return (
        found.join(f.broadcast(about), on="run", how="left")
        .withColumn("window", f.get(inside, f.lit(0))["window"])
        .withColumn("topic", topic)
        .drop("spans", "topic_name")
        .hint("rebalance")
    )


def _told(row: Mapping[str, Any], explain: Callable[[Mapping[str, Any]], str], zero_ns: int) -> dict[str, Any]:
    """A finding in full, as reconciled.json has it."""
    told = {name: row[name] for name in ("anomaly", "topic", "partition", "messages", "offsets", "sender", "reader")}
    evidence = {k: v for k, v in (row["evidence"] or {}).items() if v is not None}
    told |= {"t_s": seconds(row["t"], zero_ns), "window": row["window"], "evidence": evidence}
    if row["excuse"] is not None:
        told["excuse"] = row["excuse"]
    return told | {"text": explain(told)}


def _facts(tables: Tables) -> DataFrame:
    return tables.runs.select("run", "run_id", "scenario", "zero_ns")


def _collect(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:500]
