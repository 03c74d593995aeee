"""A judged run adds one row to the store, and a store that cannot be written changes no verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from faults.kill import Kill
from faults.pause import Pause
from harness.contracts import Mode, Verdict
from harness.ledger.journal import VERSION
from harness.ledger.rundir import RunDir, write_json
from harness.scenario import Scenario
from harness.schedule import once, sequence
from harness.targets import group_coordinator, leader_of
from harness.trends.recorder import SessionRecorder
from harness.trends.row import Row
from harness.trends.store import FOLDER, read_rows
from harness.verdict import AnomalyCount, Judgement

STARTED_S = 1_767_222_000.5
DRAWN = Scenario(
    name="night-007-kill-pause",
    mode=Mode.AT_LEAST_ONCE,
    schedule=sequence(once(Kill(), on=leader_of()), once(Pause(), on=group_coordinator())),
    seed=4711,
)
CONTROL = replace(
    DRAWN,
    name="night-008-kill-pause",
    expected=Verdict.VIOLATED,
    requires={"lost": 1},
    tolerates=("reordered",),
    control=True,
)
RECONCILED: Mapping[str, Any] = {
    "counts": {"attempted": 1000, "acked": 990, "lost": 3},
    "latency_ms": {"p50": 2, "p99": 40.5, "max": None},
    "throughput_per_s": 812.5,
    "unavailable_s_max": 3,
    "findings": [],
    "coverage": {
        "windows": [
            {"window": 0, "fault": "kill", "bit": True, "recovered_s": 4},
            {"window": 1, "fault": "pause", "bit": False, "recovered_s": None},
        ]
    },
}


def run_folder(runs: Path, scenario: Scenario) -> RunDir:
    """Write a run folder with a manifest."""
    run = RunDir.create(runs, scenario.name)
    manifest = {
        "version": VERSION,
        "clock": {"monotonic_ns": 1, "unix": STARTED_S},
        "scenario": scenario.describe(),
        "cluster": {"kind": "local"},
        "machine": {"system": "Linux", "cores": 2, "memory_gib": 7.7},
        "versions": {"kafka": "4.3.1", "confluent-kafka": "2.16.1"},
    }
    write_json(run.manifest, manifest)
    return run


def judged(verdict: Verdict, *counts: AnomalyCount, expected: Verdict = Verdict.HELD) -> Judgement:
    allowed = (AnomalyCount("duplicated", 7, "retries"),)
    return Judgement(verdict, expected, Mode.AT_LEAST_ONCE, counts, allowed)


def row_of(
    tmp_path: Path,
    scenario: Scenario,
    judgement: Judgement,
    findings: Sequence[Mapping[str, Any]] = (),
    canary: str = "",
) -> Row:
    notes: list[str] = []
    recorder = SessionRecorder(tmp_path, "nightly", notes.append, "a-night", canary)
    recorder.add(run_folder(tmp_path, scenario), {**RECONCILED, "findings": findings}, judgement)
    assert notes == []
    (row,) = read_rows(tmp_path / FOLDER)
    return row


def test_a_row_has_what_the_run_measured(tmp_path: Path) -> None:
    row = row_of(tmp_path, DRAWN, judged(Verdict.VIOLATED, AnomalyCount("lost", 3, "acked")))
    run = next((tmp_path / DRAWN.name).iterdir())
    assert asdict(row) == {
        "schema": 1, "session": "a-night", "kind": "nightly", "started_s": STARTED_S, "started": "2025-12-31T23:00:00Z",
        "run": f"{DRAWN.name}/{run.name}", "scenario": DRAWN.name, "mode": "at_least_once", "workload": "produce_consume",
        "judged_as": "at_least_once", "expected": "HELD", "verdict": "VIOLATED", "standing": "broken",
        "canary": False, "control": False, "fault": "kill-leader+pause-group_coordinator", "faults": ("kill", "pause"),
        "targets": ("leader", "group_coordinator"), "client": "confluent", "client_version": "2.16.1", "kafka_version": "4.3.1",
        "cluster": "local", "machine": "Linux, 2 cores, 7.7 GiB", "seed": 4711, "anomalies": ("lost",),
        "anomaly_counts": (3,), "anomaly_faults": ("kill + pause",), "planted": (), "allowed": ("duplicated",),
        "allowed_counts": (7,), "windows": 2, "windows_bitten": 1, "unavailable_s": 3.0, "recovery_s": (4.0,),
        "throughput_per_s": 812.5, "latency_p50_ms": 2.0, "latency_p99_ms": 40.5, "attempted": 1000, "acked": 990,
    }  # fmt: skip
    assert row.findings == {"lost": "kill + pause"}
    assert {type(each) for each in (row.unavailable_s, row.latency_p50_ms, *row.recovery_s)} == {float}


@pytest.mark.parametrize(
    ("windows", "faults"),
    [((1, 1), "pause"), ((0, 1), "kill + pause"), ((0, None), "kill + pause"), ((0, 9), "kill + pause")],
)
def test_a_finding_belongs_to_the_faults_of_its_windows(
    tmp_path: Path, windows: Sequence[int | None], faults: str
) -> None:
    findings = [{"anomaly": "lost", "window": window} for window in windows]
    findings.append({"anomaly": "duplicated", "window": 0})
    row = row_of(tmp_path, DRAWN, judged(Verdict.VIOLATED, AnomalyCount("lost", 2, "")), findings)
    assert row.anomaly_faults == (faults,)


def test_what_a_control_plants_is_no_finding(tmp_path: Path) -> None:
    counts = [AnomalyCount(name, 1, "") for name in ("lost", "reordered", "corrupted")]
    row = row_of(tmp_path, CONTROL, judged(Verdict.VIOLATED, *counts, expected=Verdict.VIOLATED))
    assert row.planted == ("lost", "reordered")
    assert list(row.findings) == ["corrupted"]


def test_the_canary_has_no_findings(tmp_path: Path) -> None:
    counts = [AnomalyCount("corrupted", 1, "")]
    row = row_of(
        tmp_path, CONTROL, judged(Verdict.VIOLATED, *counts, expected=Verdict.VIOLATED), canary=CONTROL.name
    )
    assert row.canary
    assert row.findings == {}


def test_numbers_that_were_not_measured_are_null(tmp_path: Path) -> None:
    recorder = SessionRecorder(tmp_path, "prove", pytest.fail)
    nothing = {
        "counts": {},
        "coverage": {"windows": []},
        "latency_ms": {"p50": None},
        "throughput_per_s": float("nan"),
    }
    recorder.add(run_folder(tmp_path, replace(DRAWN, schedule=())), nothing, judged(Verdict.INCONCLUSIVE))
    (row,) = read_rows(tmp_path / FOLDER)
    assert (row.attempted, row.unavailable_s, row.throughput_per_s, row.latency_p50_ms) == (None,) * 4
    assert (row.fault, row.faults, row.recovery_s) == ("none", (), ())
    assert row.session.startswith(f"prove-{time.strftime('%Y')}")


def test_a_store_that_cannot_be_written_is_one_noted_line(tmp_path: Path) -> None:
    (tmp_path / FOLDER).touch()
    notes: list[str] = []
    recorder = SessionRecorder(tmp_path, "prove", notes.append)
    for _ in range(3):
        recorder.add(run_folder(tmp_path, DRAWN), RECONCILED, judged(Verdict.HELD))
    (note,) = notes
    assert FOLDER in note
    assert "not added" in note


def test_a_run_without_a_manifest_changes_nothing_either(tmp_path: Path) -> None:
    notes: list[str] = []
    SessionRecorder(tmp_path, "prove", notes.append).add(
        RunDir.create(tmp_path, "x"), RECONCILED, judged(Verdict.HELD)
    )
    assert len(notes) == 1
    assert not (tmp_path / FOLDER).exists()


def test_a_night_marks_what_it_repeats(tmp_path: Path) -> None:
    recorder = SessionRecorder(tmp_path, "nightly", pytest.fail, "a-night")
    recorder.add(run_folder(tmp_path, DRAWN), RECONCILED, judged(Verdict.HELD))
    with recorder.as_kind("replay"):
        recorder.add(run_folder(tmp_path, DRAWN), RECONCILED, judged(Verdict.HELD))
    recorder.add(run_folder(tmp_path, DRAWN), RECONCILED, judged(Verdict.HELD))
    assert [row.kind for row in read_rows(tmp_path / FOLDER)] == ["nightly", "replay", "nightly"]
