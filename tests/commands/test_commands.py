"""Commands as users call them: wrong input is one line that names the thing, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main


def test_reconcile_of_no_run_folder_is_bad_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert f"{tmp_path}: no run folder is in it" in told.err


def test_prove_of_an_unknown_scenario_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--only", "nonsense*"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--only nonsense*" in told.err
    assert "exactly_once-kill-leader" in told.err


def test_prove_lists_its_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--list", "--quick"]) == 0
    assert capsys.readouterr().out.split() == [
        "at_most_once-kill-leader",
        "at_least_once-kill-leader",
        "exactly_once-kill-leader",
    ]


def test_sweep_says_when_there_is_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))  # others may have left something in theirs
    assert main(["sweep", "--runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing to sweep\n"
