"""Made-up rows: sessions of runs, one a day."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

from harness.contracts import Mode, Verdict
from harness.trends.row import SCHEMA, Row, fault_text

DAY_S = 86_400.0
FIRST_NIGHT_S = 1_767_222_000.0  # 2025-12-31 23:00 UTC
TONIGHT = 10  # number of the newest night

PLAIN = Row(
    schema=SCHEMA, session="", kind="nightly", started_s=0.0, started="", run="", scenario="", mode=str(Mode.AT_LEAST_ONCE),
    workload="produce_consume", judged_as=str(Mode.AT_LEAST_ONCE), expected=str(Verdict.HELD), verdict=str(Verdict.HELD),
    standing="as_promised", canary=False, control=False, fault="kill-leader", faults=("kill",),
    targets=("leader",), client="confluent", client_version="2.12.1", kafka_version="4.3.1", cluster="local",
    machine="Linux, 2 cores, 8 GiB", seed=1, anomalies=(), anomaly_counts=(), anomaly_faults=(), planted=(), allowed=(),
    allowed_counts=(), windows=1, windows_bitten=1, unavailable_s=3.5, recovery_s=(4.0,), throughput_per_s=900.0,
    latency_p50_ms=2.0, latency_p99_ms=40.0, attempted=4000, acked=3990,
)  # fmt: skip


def run_of(night: int, number: int = 0, **changes: Any) -> Row:
    """Return a run of a night; nights follow each other by a day, runs by a minute."""
    started_s = FIRST_NIGHT_S + night * DAY_S + number * 60
    name = f"night-{number:03}"
    made = replace(
        PLAIN,
        session=f"n{night}",
        started_s=started_s,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started_s)),
        scenario=name,
        run=f"{name}/{night:04}",
        **changes,
    )
    targets = ("leader",) * len(made.faults)
    return replace(made, fault="+".join(made.faults) or "none", windows=len(made.faults), targets=targets)


def violated(row: Row, anomaly: str = "lost", times: int = 3, faults: tuple[str, ...] | None = None) -> Row:
    """Return the run with a finding, made in the windows of these faults (default: of all)."""
    return replace(
        row,
        verdict=str(Verdict.VIOLATED),
        standing="broken",
        anomalies=(anomaly,),
        anomaly_counts=(times,),
        anomaly_faults=(fault_text(row.faults if faults is None else faults),),
    )


def noisy(row: Row, chance: random.Random, slower: float = 1.0) -> Row:
    """Return the run with times as chance has them: recovery around four seconds, times `slower`."""
    return replace(
        row,
        recovery_s=(chance.gauss(4.0, 0.5) * slower,),
        unavailable_s=chance.gauss(3.5, 0.5) * slower,
        throughput_per_s=chance.gauss(900.0, 40.0),
        latency_p50_ms=chance.gauss(2.0, 0.2),
        latency_p99_ms=chance.gauss(40.0, 6.0),
    )


def quiet_nights(nights: int = TONIGHT, runs: int = 6, seed: int = 1) -> list[Row]:
    """Return the runs of nights 0 to `nights`, all of them held, with times that differ by chance only."""
    chance = random.Random(seed)
    return [noisy(run_of(night, number), chance) for night in range(nights + 1) for number in range(runs)]
