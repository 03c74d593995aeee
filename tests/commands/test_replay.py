"""`replay`: the same scenario with the same seed, as often as asked, and its rate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.ledger.rundir import find_runs
from tests.commands.mock_brokers import LIAR, on_mock_brokers
from tests.short_run import HONEST


def stored(folder: Path, scenario: object = LIAR) -> Path:
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario.describe()))  # type: ignore[attr-defined]
    return file


@pytest.mark.spark
def test_a_violated_scenario_is_replayed_with_its_seed_and_its_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_mock_brokers(monkeypatch)
    runs = tmp_path / "runs"
    words = ["--times", "3", "--json", "--runs", str(runs)]
    assert main(["replay", str(stored(tmp_path, LIAR.with_seed(77))), *words]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["shown"], data["conclusive"], data["rate"]) == (3, 3, 1.0)
    assert data["interval"] == pytest.approx([0.4385, 1.0], abs=1e-4)
    folders = find_runs([runs])
    assert [str(run.path) for run in folders] == data["run_dirs"]
    assert {run.read_manifest()["seed"] for run in folders} == {77}
    described = json.loads(folders[0].scenario.read_text())
    assert described == json.loads(json.dumps(LIAR.with_seed(77).describe()))
    # Again from a run folder: now the anomalies of that run are what counts.
    assert main(["replay", str(folders[0].path), "--json", "--runs", str(tmp_path / "again")]) == 1
    again = json.loads(capsys.readouterr().out)
    assert "lost" in again["wanted"]
    assert again["shown"] == 1


@pytest.mark.spark
def test_a_scenario_that_holds_is_replayed_with_exit_code_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_mock_brokers(monkeypatch)
    assert main(["replay", str(stored(tmp_path, HONEST)), "--runs", str(tmp_path / "runs")]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("honest, seed 1: a violation: 0 of 1 (0.0%; ")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"name": "x"}', "scenario.json.mode: missing"),
        ('{"name": "x", "mode": "never"}', "scenario.json.mode: one of"),
        ("{", "not JSON"),
    ],
)
def test_a_file_that_is_no_scenario_is_one_line(
    content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenario.json").write_text(content)
    assert main(["replay", str(tmp_path / "scenario.json")]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1


def test_no_repeats_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(stored(tmp_path)), "--times", "0"]) == 2
    assert "--times 0" in capsys.readouterr().err
