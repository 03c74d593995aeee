"""A whole night on mock brokers with a disk budget: runs as promised are reduced, a finding stays whole, resources are in the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.ledger.rundir import RunDir
from tests.commands.mock_brokers import CANARY, LIAR, without_replays
from tests.commands.test_nightly import HONEST_ONES, with_plan


@pytest.mark.spark
def test_a_night_stays_within_its_budget_and_records_what_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(monkeypatch, [HONEST_ONES[0], LIAR, CANARY, HONEST_ONES[1]])
    without_replays(monkeypatch)
    words = ["nightly", "--seed", "7", "--runs", str(tmp_path / "runs"), "--disk-gb", "0.000001", "--json"]
    assert main(words) == 1
    said = capsys.readouterr()
    data = json.loads(said.out)
    by_name = {run["scenario"]: RunDir(Path(run["run_dir"])) for run in data["runs"]}
    assert by_name["honest-1"].keeps_results_only()
    assert by_name["liar"].ledger.is_dir(), "the evidence stays whole"
    assert str(by_name["honest-1"].path) in data["reduced"]
    assert str(by_name["liar"].path) not in data["reduced"]
    assert "what is left is evidence" in said.err
    assert data["resources"]["memory_mb"]["max"] >= data["resources"]["memory_mb"]["min"] > 0
    assert data["resources"]["children"]["max"] >= 1
