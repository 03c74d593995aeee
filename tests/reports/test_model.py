"""Runs are read from files alone; what is missing reads as INCONCLUSIVE, what is damaged as UNREADABLE: never good news."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Mode
from harness.ledger import journal
from harness.ledger.rundir import RunDir, write_json
from harness.scenario import Scenario
from reports.model import UNREADABLE, RunReport, Standing

SCENARIO = {"name": "orders", "mode": "at_least_once", "guarantee": "at_least_once"}
MANIFEST = {"version": journal.VERSION, "clock": {"monotonic_ns": 5}, "scenario": SCENARIO}
RECONCILED = {
    "version": 1, "run_id": "orders/1", "counts": {}, "compared": {}, "findings": [], "coverage": {"windows": []},
}  # fmt: skip


def judged(verdict: str, expected: str = "HELD", guarantee: str = "at_least_once") -> dict[str, Any]:
    """A verdict.json whose reasons give its verdict."""
    return {
        "verdict": verdict, "expected": expected, "guarantee": guarantee, "counted": [],
        "violations": [{"anomaly": "lost", "count": 3, "reason": "no"}] if verdict == "VIOLATED" else [],
        "inconclusive": ["no proof"] if verdict == "INCONCLUSIVE" else [],
    }  # fmt: skip


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
        manifest=MANIFEST
        | {
            "scenario": SCENARIO | {"fault": "kill-leader", "seed": 5},
            "clock": {"monotonic_ns": 5, "wall": "2026-01-01", "unix": 1.5},
            "command": ["./onceproof", "prove", "--only", "a b"],
        },
        reconciled=RECONCILED
        | {
            "counts": {"attempted": 10, "acked": 9, "lost": 0},
            "compared": {"lost": 9},
            "unavailable_s_max": 3.4,
            "coverage": {
                "windows": [
                    {
                        "window": 1,
                        "fault": "kill",
                        "bit": True,
                        "proof": "moved",
                        "open_s": 1.0,
                        "healed": True,
                    }
                ]
            },
            "timeline": {"bucket_s": 0.5, "t_s": [0.0], "attempted": [10], "acked": [9], "delivered": [9]},
        },
        verdict=judged("HELD"),
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
    assert shown.count("duplicated") is None, "it was not looked for: that is not 0"
    assert shown.bite == "moved"
    assert shown.command == "./onceproof prove --only 'a b'"
    assert shown.started == 1.5
    assert shown.timeline.acked == (18.0,), "rates are per second, buckets are not"


def test_the_manifest_of_a_real_scenario_is_understood(tmp_path: Path) -> None:
    scenario = Scenario(
        name="orders", mode=Mode.AT_MOST_ONCE, judged_as=Mode.AT_LEAST_ONCE, control=True, seed=3
    )
    run = RunDir.create(tmp_path, "orders")
    write_json(run.manifest, MANIFEST | {"scenario": scenario.describe()})
    shown = RunReport.read(run)
    assert (shown.mode, shown.judged_as, shown.fault) == ("at_most_once", "at_least_once", "none")
    assert shown.control
    assert shown.seed == 3


def test_a_crashed_run_is_shown_as_not_reconciled(tmp_path: Path) -> None:
    shown = RunReport.read(folder(tmp_path, manifest=MANIFEST))
    assert shown.verdict == "INCONCLUSIVE"
    assert shown.standing is Standing.UNPROVEN
    assert "not reconciled" in shown.inconclusive[0]


def test_an_empty_folder_is_still_a_run(tmp_path: Path) -> None:
    shown = RunReport.read(folder(tmp_path))
    assert (shown.scenario, shown.verdict) == ("orders", "INCONCLUSIVE")


@pytest.mark.parametrize("damaged", ["{", "[]", "", "\x00\xff", "{}", "[" * 100_000, '{"run_id": NaN}'])
@pytest.mark.parametrize("verdict", ["HELD", "VIOLATED"])
def test_damaged_evidence_gives_no_verdict(tmp_path: Path, damaged: str, verdict: str) -> None:
    shown = RunReport.read(folder(tmp_path, manifest=MANIFEST, reconciled=damaged, verdict=judged(verdict)))
    assert (shown.verdict, shown.standing) == (UNREADABLE, Standing.UNREADABLE)
    assert shown.error.startswith("reconciled.json: ")
    assert "\n" not in shown.error


CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "an unknown verdict": {"verdict": "PROBABLY"},
    "another verdict than its reasons": {"verdict": "VIOLATED"},
    "another promise than the manifest": {"guarantee": "at_most_once"},
    "another expectation than the manifest": {"expected": "VIOLATED"},
    "another count than the findings": {"counted": [{"anomaly": "duplicated", "count": 3, "reason": "x"}]},
    "a count that is a text": {"counted": [{"anomaly": "duplicated", "count": "3", "reason": "x"}]},
}


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_verdict_that_does_not_follow_from_its_evidence_is_unreadable(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    evidence = RECONCILED | {"compared": {"lost": 9, "duplicated": 9}, "counts": {"lost": 0, "duplicated": 0}}
    whole = folder(tmp_path, manifest=MANIFEST, reconciled=evidence, verdict=judged("HELD"))
    assert RunReport.read(whole).verdict == "HELD"
    changed = folder(tmp_path, manifest=MANIFEST, reconciled=evidence, verdict=judged("HELD") | change)
    assert RunReport.read(changed).error.startswith("verdict.json: ")


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
    counts = {"lost": 3} if verdict == "VIOLATED" else {}
    run = folder(
        tmp_path,
        manifest=MANIFEST | {"scenario": SCENARIO | {"expected": expected}},
        reconciled=RECONCILED | {"compared": {"lost": 9}, "counts": counts},
        verdict=judged(verdict, expected) | {"required": {"lost": 1}},
    )
    assert RunReport.read(run).standing is standing
