"""SAMPLE rows of a store: those of the runs of a night, and made-up nights before it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.contracts import Verdict
from harness.ledger.rundir import RunDir
from harness.trends.row import Row, fault_text
from harness.trends.store import FOLDER, StoreFile
from reports.many.exercised import blows, faults_of
from reports.model import RunReport
from tests.trends.histories import DAY_S, PLAIN, violated

TONIGHT_S = 1_795_000_000.0


def rows_of(session: str, runs: Sequence[RunDir], started_s: float = TONIGHT_S) -> list[Row]:
    """Return the row of each run of a sample night."""
    return [_row(session, RunReport.read(run), started_s + 60 * number) for number, run in enumerate(runs)]


def night_before(rows: Sequence[Row], nights: int, broken: int = -1) -> list[Row]:
    """Return the rows of a night so many nights earlier, all held; `broken`: number of a run that lost messages."""
    luck = random.Random(nights)
    found = []
    for number, row in enumerate(rows):
        started_s = row.started_s - nights * DAY_S
        held = replace(
            row, session=f"night-before-{nights}", started_s=started_s, started=_text(started_s),
            run=f"{row.scenario}/before-{nights}", verdict=row.expected if row.control else str(Verdict.HELD),
            standing="as promised", anomalies=(), anomaly_counts=(), anomaly_faults=(),
            recovery_s=tuple(value * luck.uniform(0.4, 0.6) for value in row.recovery_s),
            throughput_per_s=(row.throughput_per_s or 0.0) * luck.uniform(0.9, 1.1),
        )  # fmt: skip
        found.append(violated(held) if number == broken else held)
    return found


def store(runs: Path, rows: Sequence[Row]) -> None:
    """Write the rows into the store of a folder of runs."""
    file = StoreFile(runs / FOLDER)
    for row in rows:
        file.append(row)


def _row(session: str, run: RunReport, started_s: float) -> Row:
    faults = tuple(faults_of(run))
    bad = [] if run.control else list(run.violations)
    return replace(
        PLAIN, session=session, started_s=started_s, started=_text(started_s), run=run.run_id, scenario=run.scenario,
        mode=run.mode, judged_as=run.judged_as, expected=run.expected, verdict=run.verdict,
        standing=str(run.standing), canary=run.control, control=run.control, fault=run.fault, faults=faults,
        targets=tuple(blow.target for blow in blows(run))[: len(faults)], seed=run.seed or 0,
        anomalies=tuple(each.anomaly for each in bad), anomaly_counts=tuple(each.count for each in bad),
        anomaly_faults=tuple(fault_text(faults) for _ in bad), windows=len(faults), windows_bitten=len(faults),
        unavailable_s=run.unavailable_s_max, throughput_per_s=run.throughput_per_s,
        recovery_s=tuple(w.recovered_s for w in run.windows if w.recovered_s is not None),
    )  # fmt: skip


def _text(started_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started_s))
