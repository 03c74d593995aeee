"""Commands as users call them: wrong input gives one line that names it, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main


def test_reconcile_of_no_run_folder_is_bad_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert f"{tmp_path}: no run folder is in it" in output.err


def test_prove_of_an_unknown_scenario_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--only", "nonsense*"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "--only nonsense*" in output.err
    assert "exactly_once-kill-leader" in output.err


def test_prove_lists_its_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--list", "--quick"]) == 0
    assert capsys.readouterr().out.split() == [
        "at_most_once-kill-leader",
        "at_least_once-kill-leader",
        "exactly_once-kill-leader",
    ]


def test_sweep_reports_that_there_is_nothing_to_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "ONCEPROOF_CACHE", str(tmp_path / "cache")
    )  # other sessions may have left something in theirs
    assert main(["sweep", "--runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing to sweep\n"
