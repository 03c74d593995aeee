"""Verdicts on histories of other tools: the finders of ledgers, in one Spark session for all files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from harness.contracts import Finder, Mode, Outcome, Verdict
from harness.guarantees import TABLE
from harness.histories.parse import History
from harness.histories.rows import Numbered, number
from harness.histories.tables import tables
from harness.reconcile.find.findings import HISTORY
from harness.reconcile.find.rounds import CRASHED, FINDINGS, ask, packed, questions
from harness.reconcile.job import all_finders
from harness.reconcile.spark.pieces import PIECE, Subject, unpacked
from harness.verdict import Judgement, Settings, judge

PHANTOM = "phantom"
_OF_READERS = ("skipped", "rewound")
_OF_SENDERS = ("reordered", "interleaved")
_CYCLES = ("write_cycle", "read_cycle")


@dataclass(frozen=True)
class Judged:
    history: History
    judgement: Judgement
    findings: list[dict[str, Any]]
    coverage: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    def to_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict.value, "findings": self.findings, "coverage": self.coverage}


def judge_histories(
    histories: Sequence[History],
    spark: SparkSession,
    guarantee: Mode,
    *,
    ww_deps: bool = False,
    closed: bool = False,
) -> list[Judged]:
    """Return the verdict on each history.

    `closed`: the history contains every send, so a message without a send is a phantom. Otherwise the history may have begun
    after the message was sent.
    """
    numbered = [number(history) for history in histories]
    finders = [finder for finder in all_finders(HISTORY) if closed or finder.anomaly != PHANTOM]
    crashed: dict[str, str] = {}
    rows = _ask(spark, numbered, finders, crashed, ww_deps=ww_deps)
    judged = []
    for run, one in enumerate(numbered):
        found = list(_findings(one, [row for row in rows if row["run"] == run and row["excuse"] is None]))
        seen = _coverage(one, finders)
        judgement = _judgement(found, seen, crashed, guarantee)
        if judgement.inconclusive:
            seen["inconclusive"] = list(judgement.inconclusive)
        judged.append(Judged(one.history, judgement, found, seen))
    return judged


def _ask(
    spark: SparkSession,
    histories: Sequence[Numbered],
    finders: Sequence[Finder],
    crashed: dict[str, str],
    *,
    ww_deps: bool,
) -> list[dict[str, Any]]:
    """Return all findings: Spark distributes the histories, and each task asks the finders about its own."""

    def judge_some(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = {number: histories[number] for batch in batches for number in batch.column(0).to_pylist()}
        asked = tables(mine, ww_deps=ww_deps)
        for field in fields(asked):
            yield from packed(ask(questions(finders, field.name), getattr(asked, field.name)))

    tasks = min(len(histories), spark.sparkContext.defaultParallelism)
    judged = spark.range(0, len(histories), 1, tasks).mapInArrow(judge_some, PIECE).toArrow()
    answers = unpacked(judged.to_batches(), Subject.RESULT)
    crashed |= {row["finder"]: row["reason"] for row in answers[CRASHED].to_pylist()}
    found = answers[FINDINGS].to_pylist()
    return [
        {**row, "evidence": dict(row["evidence"] or ())} for row in found if row["anomaly"] not in crashed
    ]


def _judgement(
    found: Sequence[Mapping[str, Any]], seen: Mapping[str, Any], crashed: Mapping[str, str], guarantee: Mode
) -> Judgement:
    doubts = (
        [] if seen["sends_ok"] or seen["polls_ok"] else ["no send and no poll completed: nothing was tested"]
    )
    coverage = {
        "windows": [], "progress_before": 1, "drained": True, "reads": {}, "gaps": [], "errors": [], "doubts": doubts,
    }  # fmt: skip
    counts = Counter(finding["anomaly"] for finding in found)
    assert counts.keys() <= TABLE.keys()
    reconciled = {"counts": counts, "crashed": crashed, "compared": {}, "coverage": coverage}
    return judge(reconciled, guarantee, Settings())


# --- findings -------------------------------------------------------------------------------------


def _findings(numbered: Numbered, rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield findings with the names and lines of the file, each once, in the order of the table of anomalies."""
    by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        one = _finding(numbered, row)
        key = one["anomaly"], one["partition"], repr(one["messages"]), one["scope"], repr(one["events"])
        if key in by_key:
            one["offsets"] = sorted({*by_key[key]["offsets"], *one["offsets"]})
        by_key[key] = one
    order = list(TABLE)
    yield from sorted(
        by_key.values(),
        key=lambda one: (order.index(one["anomaly"]), str(one["partition"]), one["events"], one["offsets"]),
    )


def _finding(numbered: Numbered, row: Mapping[str, Any]) -> dict[str, Any]:
    history, evidence = numbered.history, row["evidence"] or {}
    anomaly, keys = row["anomaly"], [numbered.messages[name] for name in row["messages"]]
    partition = keys[0][0] if keys else row["partition"]
    events: list[int]
    if anomaly in _CYCLES:
        events = [int(number) - 1 for number in evidence["operations"].split(",")]
    elif anomaly in _OF_READERS:
        events = [int(evidence["from_t"]), int(evidence["to_t"])]
    else:
        writers = [history.writers[key].line for key in keys if key in history.writers]
        readers = [] if anomaly in _OF_SENDERS else _readers(history, anomaly, keys, row["offsets"])
        events = [*writers, *readers]
    return {
        "anomaly": anomaly,
        "partition": None if partition is None else history.partitions[partition],
        "scope": evidence.get("scope"),
        "messages": [message for _, message in keys],
        "offsets": [] if anomaly in _CYCLES else list(row["offsets"]),
        "events": events,
    }


def _readers(
    history: History, anomaly: str, keys: Sequence[tuple[int, Any]], offsets: Sequence[int]
) -> list[int]:
    """Return the operations that read these messages; for a premature read only those that came too early."""
    lines = []
    for operation in history.operations:
        reads = [read for read in operation.reads if (read.partition, read.message) in keys]
        if anomaly == "offset_conflict":
            reads = [read for read in reads if read.offset in offsets]
        if anomaly in ("aborted_read", "premature_read"):
            writer = history.writers[keys[0]]
            early = operation is writer or (writer.invoked is not None and operation.line < writer.invoked)
            reads = reads if early == (anomaly == "premature_read") else []
        if reads:
            lines.append(operation.line)
    return lines


def _coverage(numbered: Numbered, finders: Sequence[Finder]) -> dict[str, Any]:
    history = numbered.history
    sends = Counter(op.outcome for op in history.operations for _ in op.sends)
    reads = sum(len(op.reads) for op in history.operations)
    claims = sum(sent.offset is not None for op in history.operations for sent in op.sends) + reads
    read_ok = {
        (r.partition, r.message) for op in history.operations if op.outcome is Outcome.ACKED for r in op.reads
    }
    compared = {
        "lost": sends.total(), "unseen": sends[Outcome.ACKED], "duplicated": len(numbered.ids), "reordered": sends.total(),
        "offset_conflict": claims, "skipped": reads, "rewound": reads, "aborted_read": reads, "premature_read": reads,
        "interleaved": sends.total(), "write_cycle": len(history.operations), "read_cycle": len(history.operations),
        PHANTOM: reads,
    }  # fmt: skip
    return {
        "file": str(history.path),
        "events": history.events,
        "operations": len(history.operations),
        "processes": len(history.processes),
        "partitions": len(history.partitions),
        "sends_ok": sends[Outcome.ACKED],
        "sends_failed": sends[Outcome.REJECTED],
        "sends_unknown": sends[Outcome.UNKNOWN],
        "polls_ok": sum(op.polls for op in history.operations if op.outcome is Outcome.ACKED),
        "records_read": reads,
        "messages_read_by_ok_polls": len(read_ok),
        "never_sent": sum(key not in history.writers for key in numbered.ids),
        "rebalances": sum(bool(op.rebalanced) for op in history.operations),
        "compared": {finder.anomaly: compared[finder.anomaly] for finder in finders},
    }
