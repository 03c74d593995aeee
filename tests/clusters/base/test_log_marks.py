"""TRUST R6: from a log that grows over many runs, each run keeps only what was written during the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.base.log_marks import LogMarks
from harness.clusters.memory import MemoryCluster


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "broker-1" / "server.log"
    path.parent.mkdir()
    path.write_text("start\n")
    return path


def _kept(marks: LogMarks, log: Path, into: Path) -> str:
    marks.copy({"broker-1": log, "broker-2": log.parent / "never-written"}, into)
    assert [path.name for path in into.iterdir()] == ["broker-1.log"]
    return (into / "broker-1.log").read_text()


def test_sixteen_runs_each_keep_only_their_own_lines(log: Path, tmp_path: Path) -> None:
    for run in range(16):
        marks = LogMarks({"broker-1": log})
        with log.open("a") as file:  # a restarted broker appends as well
            file.write(f"run {run}\n")
        assert _kept(marks, log, tmp_path / str(run)) == f"run {run}\n"


def test_without_a_mark_everything_is_kept(log: Path, tmp_path: Path) -> None:
    assert _kept(LogMarks(), log, tmp_path / "kept") == "start\n"


def test_a_log_that_appears_during_the_run_is_kept_whole(log: Path, tmp_path: Path) -> None:
    log.unlink()
    marks = LogMarks({"broker-1": log})
    log.write_text("new\n")
    assert _kept(marks, log, tmp_path / "kept") == "new\n"


def test_a_truncated_log_is_kept_from_its_start(log: Path, tmp_path: Path) -> None:
    marks = LogMarks({"broker-1": log})
    log.write_text("new\n")  # shorter than before
    assert _kept(marks, log, tmp_path / "kept") == "new\n"


def test_a_rotated_log_is_kept_across_the_rotation(log: Path, tmp_path: Path) -> None:
    marks = LogMarks({"broker-1": log})
    with log.open("a") as file:
        file.write("before rotation\n")
    log.rename(log.with_name("server.log.1"))
    log.write_text("after rotation\n")
    assert _kept(marks, log, tmp_path / "kept") == "before rotation\nafter rotation\n"


def test_a_cluster_keeps_the_logs_of_a_run(tmp_path: Path) -> None:
    cluster = MemoryCluster(tmp_path)
    log = tmp_path / "memory.log"
    log.write_text("before\n")
    cluster.begin_logs()
    with log.open("a") as file:
        file.write("during\n")
    cluster.collect_logs(tmp_path / "kept")
    assert (tmp_path / "kept" / "memory.log").read_text() == "during\n"
