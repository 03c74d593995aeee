"""`./onceproof report RUN…` finds run folders and writes their report."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from harness.commands import report
from harness.errors import UsageError
from harness.ledger.packing import pack
from harness.ledger.rundir import RunDir, find_runs
from tests.reports.sample import sample_runs


def parsed(*arguments: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return parser.parse_args([str(a) for a in arguments])


def test_a_folder_of_folders_is_searched(
    sample: list[RunDir], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = sample[0].path.parents[1]
    out = tmp_path / "report.html"
    assert report.run(parsed(root, "--out", out)) == 0
    assert capsys.readouterr().out == f"13 of 13 runs as promised.\n{out}\n"
    assert "All 9 promises held" in out.read_text(encoding="utf-8")
    assert out.with_suffix(".json").exists()


@pytest.mark.parametrize("keep", ["evidence", "least"])
def test_packed_runs_are_reported_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keep: str
) -> None:
    """TRUST R6."""
    runs = sample_runs(tmp_path / "runs")
    for run in runs:
        (run.path / "ledger").mkdir(exist_ok=True)
        (run.path / "ledger" / "harness.events").write_text("{}\n")
        assert pack(run, keep) == ""
        assert not (run.path / "ledger").exists()
    assert report.run(parsed(tmp_path / "runs", "--out", tmp_path / "report.html")) == 0
    assert capsys.readouterr().out.startswith("13 of 13 runs as promised.\n")


def test_a_run_named_twice_is_shown_once(sample: list[RunDir]) -> None:
    one = sample[4].path
    assert find_runs([one, one.parent, one]) == [RunDir(one.resolve())]


def test_a_place_without_runs_is_bad_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder is in it"):
        report.run(parsed(tmp_path))
    with pytest.raises(UsageError, match="no such folder"):
        report.run(parsed(tmp_path / "gone"))


def test_the_html_must_not_take_the_place_of_the_json(sample: list[RunDir], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="HTML file"):
        report.run(parsed(sample[0].path, "--out", tmp_path / "x.json"))
