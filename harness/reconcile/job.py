"""The Spark entry: one run folder in, findings.parquet and reconciled.json out.

First the ledger is screened block by block in one pass (harness.reconcile.screen). Rows of blocks that are not sound,
and only those, are then asked all questions of all finders at once, and finders that suspect something look closer,
again in one query. When a query fails, each finder runs by itself and the one that raised is named: it never
hides the others.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harness import registry
from harness.contracts import Finder
from harness.reconcile.coverage import coverage, seconds
from harness.reconcile.findings import COLUMNS
from harness.reconcile.seal import Sealed, seal
from harness.reconcile.session import without_codegen
from harness.reconcile.blocks import Count, Facts
from harness.reconcile.look import choose
from harness.reconcile.screen import Screened, facts, screen
from harness.reconcile.tables import Tables, derive, read
from harness.reconcile.times import latency_and_throughput, recovery, timeline, unavailable_s_max
from harness.rundir import RunDir, write_json

VERSION = 1
WORST = 5  # findings of each kind that are told in full
OUTCOMES = (Count.ATTEMPTED, Count.ACKED, Count.REJECTED, Count.UNKNOWN)

Rows = list[dict[str, Any]]
Conditions = dict[str, dict[str, str]]  # table -> name -> condition
Values = dict[int, dict[str, int]]  # run -> name of a condition -> how many rows answer it
Crashed = dict[str, str]


def all_finders() -> list[Finder]:
    return [registry.load("finder", name)() for name in registry.names("finder")]


def reconcile(run: RunDir, spark: SparkSession, finders: Sequence[Finder] | None = None) -> dict[str, Any]:
    """Seal the ledger, ask every finder, write the results and give what reconciled.json holds."""
    began = time.monotonic()
    sealed = seal(run)
    own = read(spark, {run.tables: sealed})
    known = facts(own, [sealed])
    screened = screen(own, known)
    chosen = list(all_finders() if finders is None else finders)
    crashed: Crashed = {}
    rows = _look(run, spark, own, screened, sealed, chosen, crashed)
    result = _result(sealed, [x for x in chosen if x.anomaly not in crashed], known[0], screened, rows, crashed)
    result["seconds"] = round(time.monotonic() - began, 3)
    write_json(run.reconciled, result)
    return result


def _look(
    run: RunDir,
    spark: SparkSession,
    own: Mapping[str, DataFrame],
    screened: Screened,
    sealed: Sealed,
    finders: Sequence[Finder],
    crashed: Crashed,
) -> Rows:
    """What finders find in the blocks that are not sound."""
    doubtful = choose(spark, own, screened)
    if doubtful is None:
        none = derive(own, strange=False)
        return _find(run, spark, none, [], crashed)
    tables = derive(own, strange=screened.count(Count.STRANGE) > 0, chosen=doubtful)
    try:
        with without_codegen(spark):
            value = ask(tables, finders, crashed).get(sealed.run, {})
            return _find(run, spark, tables, suspicious(finders, value), crashed)
    finally:
        tables.unpersist()
        doubtful.unpersist()


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
        "compared": {finder.anomaly: sum(screened.count(Count[c]) for c in finder.compared) for finder in finders},
        "crashed": crashed,
        "unavailable_s_max": unavailable_s_max(screened),
        **latency_and_throughput(screened),
        "findings": [_told(row, explain[row["anomaly"]], sealed.zero_ns) for row in rows],
        "coverage": seen,
        "timeline": timeline(screened),
    }


# --- asking ---------------------------------------------------------------------------------------


def ask(tables: Tables, finders: Sequence[Finder], crashed: Crashed) -> Values:
    """How many rows of each run are asked about, and suspected, by each finder."""
    asked = {finder.anomaly: _conditions(finder) for finder in finders}
    try:
        return _count(tables, list(asked.values()))
    except Exception:
        for name, conditions in asked.items():
            try:
                _count(tables, [conditions])
            except Exception as error:  # noqa: BLE001  a finder may raise anything; it must not hide the others
                crashed[name] = _reason(error)
        if not crashed:
            raise  # no finder is to blame
        return _count(tables, [c for name, c in asked.items() if name not in crashed])


def _conditions(finder: Finder) -> Conditions:
    asked: Conditions = {}
    for number, question in enumerate(finder.questions):
        names = asked.setdefault(question.of, {})
        names[f"compared {finder.anomaly} {number}"] = question.compared
        names[f"suspected {finder.anomaly} {number}"] = question.suspected
    return asked


def _count(tables: Tables, wanted: Sequence[Conditions]) -> Values:
    by_table: Conditions = {}
    for conditions in wanted:
        for table, named in conditions.items():
            by_table.setdefault(table, {}).update(named)
    # One row a table and run, with the columns of the other tables null: so that all tables are one query.
    counts = [
        getattr(tables, table).groupBy("run").agg(*(f.expr(f"count_if({condition}) AS `{name}`") for name, condition in named.items()))
        for table, named in by_table.items()
    ]
    values: Values = {}
    for row in _collect(reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), counts)):
        known = {name: int(n) for name, n in row.items() if n is not None}
        values.setdefault(known.pop("run"), {}).update(known)
    return values


def _of(finder: Finder, what: str, value: Mapping[str, int]) -> int:
    return sum(value.get(f"{what} {finder.anomaly} {number}", 0) for number in range(len(finder.questions)))


def suspicious(finders: Sequence[Finder], value: Mapping[str, int]) -> list[Finder]:
    return [finder for finder in finders if _of(finder, "suspected", value)]


# --- finding --------------------------------------------------------------------------------------


def _find(
    run: RunDir, spark: SparkSession, tables: Tables, finders: Sequence[Finder], crashed: Crashed
) -> Rows:
    """Write all findings; the worst few of each kind come back, each with the number `n` of its kind."""
    frames = _planned(finders, tables, crashed)
    draft = run.path / f".findings.{os.getpid()}"
    try:
        try:
            _write(spark, tables, frames.values(), draft)
        except Exception:
            sound = {name: frame for name, frame in frames.items() if _works(name, frame, crashed)}
            if len(sound) == len(frames):
                raise  # no finder is to blame
            _write(spark, tables, sound.values(), draft)
        shutil.rmtree(run.findings, ignore_errors=True)
        draft.rename(run.findings)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return _worst(spark, run) if frames else []


def _planned(finders: Sequence[Finder], tables: Tables, crashed: Crashed) -> dict[str, DataFrame]:
    frames = {}
    for finder in finders:
        try:
            frames[finder.anomaly] = finder.find(tables).select(*COLUMNS)
        except Exception as error:  # noqa: BLE001  as above
            crashed[finder.anomaly] = _reason(error)
    return frames


def _works(name: str, frame: DataFrame, crashed: Crashed) -> bool:
    try:
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:  # noqa: BLE001  recorded under the finder's name, and the verdict is not HELD
        crashed[name] = _reason(error)
        return False
    return True


def _write(spark: SparkSession, tables: Tables, frames: Sequence[DataFrame] | Any, draft: Any) -> None:
    none = spark.createDataFrame([], ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))
    found = reduce(DataFrame.unionByName, frames, none)
    _dressed(found, tables).write.mode("overwrite").parquet(str(draft))


def _dressed(found: DataFrame, tables: Tables) -> DataFrame:
    """With the topic's name, and the fault window that the finding's time falls into."""
    spans = tables.windows.groupBy("run").agg(f.expr("sort_array(collect_list(struct(opened, closed, window))) AS spans"))
    about = tables.runs.select("run", "run_id", "topic_name").join(spans, on="run", how="left")
    # Parquet files as many as their bytes need: usually one.
    return found.join(f.broadcast(about), on="run", how="left").selectExpr(
        "run_id", *(name for name in COLUMNS if name != "topic"),
        "CASE WHEN topic = 0 THEN topic_name ELSE 'topic ' || topic END AS topic",
        "get(filter(spans, s -> s.opened <= t AND t <= s.closed), 0).window AS window",
    ).hint("rebalance")  # fmt: skip


def _worst(spark: SparkSession, run: RunDir) -> Rows:
    ranked = spark.read.parquet(str(run.findings)).selectExpr(
        "*", "count(1) OVER (PARTITION BY run, anomaly, excuse) AS n",
        "row_number() OVER (PARTITION BY run, anomaly, excuse ORDER BY t NULLS LAST, partition, offsets) AS rank",
    )  # fmt: skip
    rows = _collect(ranked.where(f"rank <= {WORST}"))
    return sorted(rows, key=lambda row: (row["anomaly"], row["excuse"] or "", row["rank"]))


def _told(row: Mapping[str, Any], explain: Callable[[Mapping[str, Any]], str], zero_ns: int) -> dict[str, Any]:
    """A finding in full, as reconciled.json has it."""
    told = {name: row[name] for name in ("anomaly", "topic", "partition", "messages", "offsets", "sender", "reader")}
    evidence = {k: v for k, v in (row["evidence"] or {}).items() if v is not None}
    told |= {"t_s": seconds(row["t"], zero_ns), "window": row["window"], "evidence": evidence}
    if row["excuse"] is not None:
        told["excuse"] = row["excuse"]
    return told | {"text": explain(told)}


def _collect(frame: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"[:500]
