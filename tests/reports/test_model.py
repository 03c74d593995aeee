"""Runs are read from files alone; what is missing or damaged reads as INCONCLUSIVE, never as good news."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Mode
from harness.rundir import RunDir, write_json
from harness.scenario import Scenario
from reports.model import RunReport, Standing

HELD = {"verdict": "HELD", "expected": "HELD", "guarantee": "at_least_once"}
VIOLATED = {
    "verdict": "VIOLATED",
    "expected": "HELD",
    "violations": [{"anomaly": "lost", "count": 3, "reason": "no"}],
}


def folder(root: Path, **files: dict[str, Any] | str) -> RunDir:
    """A run folder with just these files: `manifest`, `reconciled`, `verdict`, as JSON or as raw text."""
    run = RunDir.create(root, "orders")
    for name, content in files.items():
        path = run.path / f"{name}.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return run


def test_a_whole_run_is_read(tmp_path: Path) -> None:
    run = folder(
        tmp_path,
        manifest={
            "scenario": {"name": "orders", "mode": "at_least_once", "fault": "kill-leader", "seed": 5},
            "clock": {"wall": "2026-01-01", "unix": 1.5},
            "command": ["./onceproof", "prove", "--only", "a b"],
        },
        reconciled={
            "counts": {"attempted": 10, "acked": 9, "lost": 0},
            "compared": {"lost": 9},
            "unavailable_s_max": 3.4,
            "coverage": {
                "windows": [{"window": 1, "fault": "kill", "bit": True, "proof": "moved", "open_s": 1.0}]
            },
            "timeline": {"bucket_s": 0.5, "t_s": [0.0], "attempted": [10], "acked": [9], "delivered": [9]},
        },
        verdict=HELD,
    )
    shown = RunReport.read(run)
    assert (shown.scenario, shown.mode, shown.fault, shown.seed) == (
        "orders",
        "at_least_once",
        "kill-leader",
        5,
    )
    assert (shown.verdict, shown.standing, shown.inconclusive) == ("HELD", Standing.AS_PROMISED, ())
    assert shown.count("acked") == 9
    assert shown.count("duplicated") is None, "nobody looked for it: that is not 0"
    assert shown.bite == "moved"
    assert shown.command == "./onceproof prove --only 'a b'"
    assert shown.started == 1.5
    assert shown.timeline.acked == (18.0,), "rates are per second, buckets are not"


def test_the_manifest_of_a_real_scenario_is_understood(tmp_path: Path) -> None:
    scenario = Scenario(
        name="orders", mode=Mode.AT_MOST_ONCE, judged_as=Mode.AT_LEAST_ONCE, control=True, seed=3
    )
    run = RunDir.create(tmp_path, "orders")
    write_json(run.manifest, {"scenario": scenario.describe()})
    shown = RunReport.read(run)
    assert (shown.mode, shown.judged_as, shown.fault) == ("at_most_once", "at_least_once", "none")
    assert shown.control
    assert shown.seed == 3


def test_a_crashed_run_is_shown_as_not_reconciled(tmp_path: Path) -> None:
    shown = RunReport.read(folder(tmp_path, manifest={"scenario": {"name": "orders", "mode": "idempotent"}}))
    assert shown.verdict == "INCONCLUSIVE"
    assert shown.standing is Standing.UNPROVEN
    assert "not reconciled" in shown.inconclusive[0]


def test_an_empty_folder_is_still_a_run(tmp_path: Path) -> None:
    shown = RunReport.read(folder(tmp_path))
    assert (shown.scenario, shown.verdict) == ("orders", "INCONCLUSIVE")


@pytest.mark.parametrize("damaged", ["{", "[]", "", "\x00\xff"])
def test_held_does_not_stand_without_its_evidence(tmp_path: Path, damaged: str) -> None:
    shown = RunReport.read(folder(tmp_path, manifest={}, reconciled=damaged, verdict=HELD))
    assert shown.verdict == "INCONCLUSIVE"
    assert "reconciled.json cannot be read" in shown.inconclusive[0]
    assert str(tmp_path) not in shown.inconclusive[0]


def test_violated_outweighs_a_damaged_file(tmp_path: Path) -> None:
    shown = RunReport.read(folder(tmp_path, manifest={}, reconciled="{", verdict=VIOLATED))
    assert (shown.verdict, shown.standing) == ("VIOLATED", Standing.BROKEN)
    assert shown.inconclusive


def test_an_unknown_verdict_is_no_verdict(tmp_path: Path) -> None:
    shown = RunReport.read(folder(tmp_path, manifest={}, reconciled={}, verdict={"verdict": "PROBABLY"}))
    assert shown.verdict == "INCONCLUSIVE"


def test_fields_of_the_wrong_kind_read_as_absent(tmp_path: Path) -> None:
    shown = RunReport.read(
        folder(
            tmp_path,
            manifest={"scenario": [], "clock": 3, "command": None, "cluster": "x"},
            reconciled={
                "counts": {"lost": "many", "acked": True},
                "unavailable_s_max": "long",
                "latency_ms": {"p50": None},
                "findings": ["x", {"anomaly": "lost", "messages": 3}],
                "coverage": {"windows": [3, {"open_s": "soon"}]},
                "timeline": {"t_s": "x"},
            },
            verdict={"verdict": "HELD", "violations": [4], "inconclusive": "x"},
        )
    )
    assert shown.counts == {}
    assert shown.unavailable_s_max is None
    assert [f.messages for f in shown.findings] == [()]
    assert [w.open_s for w in shown.windows] == [None]


@pytest.mark.parametrize(
    ("expected", "verdict", "standing"),
    [
        ("HELD", "HELD", Standing.AS_PROMISED),
        ("VIOLATED", "VIOLATED", Standing.AS_PROMISED),
        ("HELD", "VIOLATED", Standing.BROKEN),
        ("VIOLATED", "HELD", Standing.MISSED),
        ("HELD", "INCONCLUSIVE", Standing.UNPROVEN),
        ("VIOLATED", "INCONCLUSIVE", Standing.UNPROVEN),
    ],
)
def test_a_verdict_is_seen_against_what_was_expected(
    tmp_path: Path, expected: str, verdict: str, standing: Standing
) -> None:
    judged = {"verdict": verdict, "expected": expected, "required": {"lost": 1}}
    run = folder(tmp_path, manifest={}, reconciled={}, verdict=judged)
    assert RunReport.read(run).standing is standing
