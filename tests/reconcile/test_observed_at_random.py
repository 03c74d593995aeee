"""Observers of random runs that see wrong things: the Spark job and the oracle agree on every finding."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from harness.contracts import Mode, Outcome
from harness.ledger.literal_history import Record
from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import BAD_HEADER, BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.job import reconcile_many
from tests.reconcile.cases.base import LAX, STRICT, observe
from tests.reconcile.oracle import oracle_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 24
Rows = list[Record]


def _drop(rows: Rows, at: int, run: LiteralRun) -> Rows:
    return rows[:at] + rows[at + 1 :]


def _repeat(rows: Rows, at: int, run: LiteralRun) -> Rows:
    return rows[: at + 1] + rows[at:]


def _another(rows: Rows, at: int, run: LiteralRun) -> Rows:
    one = run.send(1, rows[at].partition)
    return [*rows[:at], one.at(rows[at].partition, rows[at].offset), *rows[at + 1 :]]


def _unreadable(rows: Rows, at: int, run: LiteralRun) -> Rows:
    return [*rows, replace(rows[-1], seq=900 + at, offset=rows[-1].offset + 40)]


def _flagged(rows: Rows, at: int, run: LiteralRun) -> Rows:
    flag = (BAD_HEADER, BAD_PAYLOAD, FOREIGN_RUN)[at % 3]
    fields = dict.fromkeys(("session", "seq", "txn", "key"), 0) if flag == BAD_PAYLOAD else {}
    return [*rows[:at], replace(rows[at], flags=flag, **fields), *rows[at + 1 :]]


def _other_key(rows: Rows, at: int, run: LiteralRun) -> Rows:
    return [*rows[:at], replace(rows[at], key=5), *rows[at + 1 :]]


WRONGS: list[Callable[[Rows, int, LiteralRun], Rows]] = [
    _drop,
    _repeat,
    _another,
    _unreadable,
    _flagged,
    _other_key,
]


def _observed(root: Path, seed: int) -> LiteralRun:
    """Transactions of every fate, observed while they are written; up to two wrongs for each observer."""
    draw = random.Random(seed)
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, name=f"observed-{seed}")
    run.session(1)
    seen: dict[str, Rows] = {STRICT: [], LAX: []}
    unsure: Rows = []
    for txn in range(1, draw.randint(4, 12)):
        partition = draw.randint(0, 1)
        made = [
            run.append(run.send(1, partition, txn=txn), gap=draw.choice((0, 0, 1, 70)))
            for _ in range(draw.randint(1, 9))
        ]
        early = draw.random() < 0.2  # shown before it was asked to commit
        if early:
            observe(run, STRICT, *made)
            seen[STRICT] += made
        did, outcome = draw.choice(
            [("commit", Outcome.ACKED)] * 4
            + [("abort", Outcome.ACKED), ("commit", None), ("commit", Outcome.REJECTED), (None, None)]
        )
        run.end(1, txn, did, outcome)
        shown = (did, outcome) == ("commit", Outcome.ACKED) or draw.random() < 0.2
        if shown and not early:
            seen[STRICT] += made
        seen[LAX] += made
        unsure += made if (did, outcome) == ("commit", None) else []
    _show(run, draw, STRICT, [r for r in seen[STRICT] if r not in run_rows(run, STRICT)])
    _show(run, draw, LAX, seen[LAX])
    if unsure and draw.random() < 0.5:
        run.log = [r for r in run.log if r not in unsure]
    return run


def run_rows(run: LiteralRun, reader: str) -> Rows:
    """Return the records that the observer has got already."""
    return [replace(r, t=0) for r in run.observed.get(reader, ())]


def _show(run: LiteralRun, draw: random.Random, reader: str, rows: Rows) -> None:
    rows = rows[draw.choice((0, 0, 3)) :]
    for _ in range(draw.randint(0, 2)):
        if rows:
            rows = draw.choice(WRONGS)(rows, draw.randrange(len(rows)), run)
    if rows:
        observe(run, reader, *rows)


def test_both_agree_on_what_observers_saw(spark: SparkSession, tmp_path: Path) -> None:
    runs = {seed: _observed(tmp_path, seed).finish() for seed in range(RUNS)}
    results = reconcile_many(list(runs.values()), spark)
    assert all(result["crashed"] == {} for result in results)
    second, kinds = oracle_rows(list(runs.values())), Counter[str]()
    differing = {}
    for seed, run in runs.items():
        rows = pq.read_table(run.findings).to_pylist()
        found = Counter((row["anomaly"], tuple(row["messages"]), tuple(row["offsets"])) for row in rows)
        kinds.update(anomaly for anomaly, _, _ in found)
        if found != second[run]:
            differing[seed] = found - second[run], second[run] - found
    assert differing == {}
    assert kinds.keys() >= {
        "aborted_read", "premature_read", "offset_conflict", "skipped", "rewound", "phantom", "corrupted", "lost",
    }  # fmt: skip
    assert not kinds.keys() & {"redelivered", "undelivered", "overcommitted"}, (
        "the group got all it had to get, once"
    )
