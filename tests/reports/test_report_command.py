"""`./onceproof report RUN…` finds run folders and writes their report."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import pytest

from harness.cli import main
from harness.commands import report
from harness.errors import UsageError
from harness.ledger.packing import pack
from harness.ledger.rundir import RunDir, find_runs
from harness.nights.journal import FILE, NIGHTS
from tests.reports.many.sample_night import sample_night, scenarios
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


NAMES = [each.name for each in scenarios()]


def reported(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["report", *map(str, words)])
    ended = capsys.readouterr()
    return code, ended.out, ended.err


def test_a_night_is_found_by_its_name_its_date_and_as_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "night.html"
    journal, _ = sample_night(runs, broken={NAMES[3]: {"lost": 5}})
    name = journal.file.parent.name
    older = runs / NIGHTS / "20200101-000000-1"
    older.mkdir()
    (older / FILE).write_text("torn")
    stamp = f"{name[:4]}-{name[4:6]}-{name[6:8]}"
    for night in (name, name[:8], stamp, "last"):
        code, _, err = reported(capsys, "--night", night, "--runs", runs, "--out", out)
        assert (code, err) == (0, "")
        data = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
        assert data["night"]["name"] == name
        assert [run["scenario"] for run in data["runs"]] == NAMES
        assert data["command"] == "./onceproof nightly --minutes 10 --seed 7"
        out.unlink()


def test_a_folder_of_runs_can_be_moved_with_its_nights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_night(tmp_path / "runs")
    (tmp_path / "runs").rename(tmp_path / "moved")
    out = tmp_path / "night.html"
    code, text, _ = reported(capsys, "--night", "last", "--runs", tmp_path / "moved", "--out", out)
    assert (code, text.splitlines()[0]) == (0, "9 of 9 runs as promised.")


def test_a_night_without_its_canary_is_red_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_night(tmp_path, blind=True, ended=False)
    out = tmp_path / "night.html"
    assert reported(capsys, "--night", "last", "--runs", tmp_path, "--out", out)[0] == 0
    data = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert data["headline"] == "The canary was not found: this night proves nothing"
    assert (data["exit_code"], data["ended"], data["night"]["ended"]) == (1, "interrupted", False)


def test_two_sets_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_runs(tmp_path / "old")
    sample_night(tmp_path / "runs")
    out = tmp_path / "both.html"
    words = ("--compare", tmp_path / "old", "last", "--runs", tmp_path / "runs", "--out", out)
    code, _, err = reported(capsys, *words)
    assert (code, err) == (0, "")
    data = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert (data["comparison"]["split"], len(data["runs"])) == (13, 22)
    assert data["comparison"]["sets"] == [str(tmp_path / "old"), "last"]
    assert f"--compare {tmp_path / 'old'} last" in data["command"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give run folders, or --night DATE, or --compare A B"),
        (["runs", "--night", "last"], "give run folders, or --night DATE, or --compare A B"),
        (["--night", "2020-02-30"], "no such night in runs; the newest are: bad, 2"),
        (["--night", ""], "no such night"),
        (["--night", "bad"], "not the journal of a night"),
        (["--compare", "runs", "runs"], "is in both sets"),
        (["--compare", "runs", "gone"], "--compare gone: neither a folder nor a night"),
        (["--compare", "runs", "empty"], "no run folder is in it"),
    ],
)
def test_wrong_use_is_one_line(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    sample_night(Path("runs"))
    Path("empty").mkdir()
    (Path("runs") / NIGHTS / "bad").mkdir()
    (Path("runs") / NIGHTS / "bad" / FILE).write_text('{"event": "night"}\n')
    code, out, err = reported(capsys, *words)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert not Path("report.html").exists()


def test_a_journal_cannot_name_runs_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere,) = sample_runs(tmp_path / "elsewhere")[:1]
    elsewhere.path.rename(tmp_path / "one")
    journal, _ = sample_night(tmp_path / "runs", not_reached=1)
    for path in (str(tmp_path / "one"), "../one", "a/../one", "/", "a/.."):
        journal.write("executed", scenario=NAMES[8], run_dir=path, seconds=1.0)
        code, text, _ = reported(
            capsys, "--night", "last", "--runs", tmp_path / "runs", "--out", tmp_path / "r.html"
        )
        data = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        assert code == 0
        assert {run["verdict"] for run in data["runs"][8:]} <= {"INCONCLUSIVE"}, text


JUDGED = {"event": "judged", "scenario": "NAME", "standing": "promise violated", "verdict": "VIOLATED",
          "anomalies": {}, "bitten": [], "run_dir": ""}  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "judged", "scenario": "NAME"}',
        json.dumps({**JUDGED, "scenario": "other"}),
        json.dumps({**JUDGED, "anomalies": 3, "bitten": 1}),
        json.dumps({**JUDGED, "anomalies": {"lost": []}, "bitten": [None]}),
        '{"event": "cluster", "leaks": [{"a": 1}, null]}',
        '{"event": "replayed", "scenario": "NAME", "shown": "x"}',
        '{"event": "minimised", "scenario": "NAME", "shows": true, "test": [1], "rate": 3, "faults": "one"}',
        '{"event": "ended", "used_s": 1e999}',
        '{"event": "ended", "used_s": NaN}',
        '{"event": "ended", "used_s": "inf"}',
        '{"event": "ended", "used_s": {}}',
        '{"event": "executed", "scenario": "NAME", "run_dir": "\\u0000", "seconds": 1}',
        '{"event": "executed", "scenario": "NAME", "run_dir": [], "seconds": "many"}',
        "[]",
    ],
)
def test_a_journal_of_a_stranger_is_reported_or_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    journal, _ = sample_night(tmp_path, broken={NAMES[3]: {"lost": 5}}, not_reached=1)
    with journal.file.open("a") as file:
        file.write(line.replace("NAME", NAMES[3]) + "\n")
    out = tmp_path / "r.html"
    code, _, err = reported(capsys, "--night", "last", "--runs", tmp_path, "--out", out)
    assert (code, len(err.splitlines())) in ((0, 0), (2, 1)), err
    assert "internal error" not in err
    assert out.exists() == (code == 0)


def test_a_journal_that_is_a_pipe_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal, _ = sample_night(tmp_path)
    journal.file.unlink()
    os.mkfifo(journal.file)
    code, _, err = reported(capsys, "--night", "last", "--runs", tmp_path, "--out", tmp_path / "r.html")
    assert code == 2
    assert "not a file" in err
