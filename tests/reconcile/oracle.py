"""A second opinion on a sealed ledger: every anomaly of docs/anomalies.md as a question in DuckDB's SQL.

It shares nothing with the Spark job but the sealed tables and that page. It looks at every row, without screening, and
asks each question the slow and plain way, so that the two can only agree by both being right (or by the page being
unclear, which is worth knowing as well).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from harness.ledger.rundir import RunDir
from harness.ledger.transform import Transform
from tests.reconcile.oracle_questions import QUESTIONS
from tests.reconcile.oracle_steps import ASKED, OURS, STEPS
from tests.reconcile.together import Finding


def oracle(run: RunDir) -> set[Finding]:
    """Return the anomalies of a sealed run."""
    return set(oracle_rows([run])[run])


def oracle_rows(runs: Sequence[RunDir]) -> dict[RunDir, Counter[Finding]]:
    """Return the anomalies of each sealed run, counted: two readers may have got the same aborted record.

    All runs are asked at once: a question costs as much for one small run as for a hundred.
    """
    found: dict[RunDir, Counter[Finding]] = {run: Counter() for run in runs}
    if not runs:
        return found
    with duckdb.connect(config={"threads": 2}) as db:
        _load(db, runs)
        numbers = _numbers(db, runs)
        for name, question in QUESTIONS.items():
            for row in _rows(db, question):
                anomaly = str(row.get("anomaly", name))
                found[numbers[row["run"]]][anomaly, tuple(row["messages"]), tuple(row["offsets"])] += 1
    return found


def _load(db: duckdb.DuckDBPyConnection, runs: Iterable[RunDir]) -> None:
    db.execute(
        "CREATE MACRO named(sender, session, seq) AS coalesce(sender, 'session ' || session) || '-' || seq"
    )
    db.execute("CREATE MACRO known(items) AS list_filter(items, lambda x: x IS NOT NULL)")
    for table in ASKED:
        files = [str(path) for run in runs for path in sorted((run.tables / table).glob("*.parquet"))]
        # Rows of one reader are in one file, in the order in which it got them.
        db.execute(
            f"CREATE TEMP TABLE {table} AS SELECT * FROM read_parquet($files, file_row_number = true)",
            {"files": files},
        )
    _add_owed_effects(db, runs)
    for name, step in STEPS.items():
        db.execute(f"CREATE TEMP TABLE {name} AS {step}")


def _add_owed_effects(db: duckdb.DuckDBPyConnection, runs: Iterable[RunDir]) -> None:
    """One row for each effect that an input which its group has passed has to have."""
    db.execute(
        'CREATE TEMP TABLE owed_effect (run BIGINT, partition INT, "offset" BIGINT, session BIGINT, seq BIGINT, number INT)'
    )
    for number, run in _numbers(db, runs).items():
        unread = db.execute(
            "SELECT count(*) FROM bounds WHERE run = $run AND topic > 0 AND NOT (whole AND start = 0)",
            {"run": number},
        ).fetchall()
        if not (settings := run.read_manifest().get("transform")) or unread != [(0,)]:
            continue
        inputs = db.execute(
            f"""SELECT DISTINCT partition, "offset", session, seq FROM log
                WHERE run = $run AND topic = 0 AND passed AND {OURS}""",
            {"run": number},
        ).fetchall()
        effects = Transform(**settings).effects(*(np.array([row[i] for row in inputs]) for i in (2, 3)))
        owed = [(number, *row, n) for row, count in zip(inputs, effects, strict=True) for n in range(count)]
        db.executemany("INSERT INTO owed_effect VALUES (?, ?, ?, ?, ?, ?)", owed)


def _numbers(db: duckdb.DuckDBPyConnection, runs: Iterable[RunDir]) -> Mapping[int, RunDir]:
    by_id = {str(run.read_manifest()["run_id"]): run for run in runs}
    return {number: by_id[run_id] for number, run_id in db.execute("SELECT run, run_id FROM runs").fetchall()}


def _rows(db: duckdb.DuckDBPyConnection, question: str) -> list[dict[str, Any]]:
    answer = db.execute(question)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
