"""`prove` reports folders that it cannot write before it starts anything. TRUST section 5."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from harness import provision
from harness.cli import main
from harness.commands import _run_and_report
from harness.commands._progress import Progress
from harness.provision import background_archive


@pytest.fixture(autouse=True)
def _nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: object) -> None:
        raise AssertionError("something was fetched before the folders were checked")

    monkeypatch.setattr(provision, "ensure_all", fetched)


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1, output.err
    return output.err


@pytest.mark.parametrize("command", [["prove", "--quick"], ["matrix", "--kafka", "4.3.1"]])
@pytest.mark.parametrize("below", ["", "x/y"])
def test_runs_that_are_a_file_are_refused(
    command: list[str], below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    line = refused([*command, "--runs", str(file / below)], capsys)
    assert line.startswith(f"onceproof: --runs {file / below}: cannot be written: ")
    assert line.endswith("; choose another folder\n")


@pytest.mark.parametrize("place", ["/proc/runs", "/sys/runs"])
def test_runs_that_cannot_be_written_are_refused(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(["prove", "--quick", "--runs", place], capsys).startswith(
        f"onceproof: --runs {place}: cannot be written:"
    )


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--runs " in refused(["prove", "--quick", "--runs", f"{tmp_path}/gr\udcf6sse"], capsys)


@pytest.mark.parametrize("report", ["/proc/report.html", "{file}/report.html", "{folder}", "{folder}/x.json"])
def test_a_report_that_cannot_be_written_is_refused_before_the_runs(
    report: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    place = report.format(file=tmp_path / "file", folder=tmp_path)
    line = refused(["prove", "--quick", "--runs", str(tmp_path / "runs"), "--report", place], capsys)
    assert line.startswith(f"onceproof: --report {place}: ")


@pytest.mark.parametrize("cluster", [None, "existing"])
def test_preparing_begins_spark_s_archive_after_everything_else(
    cluster: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("harness.clusters.external.undo.undo_left", lambda _: None)
    monkeypatch.setattr("harness.clusters.containers.leftovers.sweep_containers", list)
    monkeypatch.setattr("harness.clusters.base.abandoned_clusters.sweep_stale", lambda: None)
    monkeypatch.setattr(provision, "ensure_all", lambda _: steps.append("fetched"))
    monkeypatch.setattr(provision, "java", lambda _: steps.append("fetched"))
    monkeypatch.setattr(background_archive, "make_in_background", lambda _: steps.append("archive"))
    args = argparse.Namespace(runs=tmp_path / "runs", report=None, cluster=cluster)
    _run_and_report.Proof(args, Progress(1)).prepare()
    assert steps == ["fetched", "archive"]
