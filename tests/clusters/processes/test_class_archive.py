"""The class archive of the brokers: made once, a failure is recorded, a time-out is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.processes.class_archive import with_archive
from harness.clusters.processes.java import Jvm
from harness.errors import ClusterError, OnceproofError, StartTimeout, WaitTimeout


@pytest.fixture
def jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jvm:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    libs = tmp_path / "libs"
    libs.mkdir()
    (libs / "kafka.jar").touch()
    return Jvm(tmp_path / "java", "17.0.1", libs, "4.3.1")


class Training:
    """Counts its runs. The first one raises the error, the others make the archive."""

    def __init__(self, error: OnceproofError) -> None:
        self.runs, self.error = 0, error

    def __call__(self, jvm: Jvm, folder: Path) -> None:
        self.runs += 1
        if self.runs == 1:
            raise self.error
        assert jvm.train is not None
        jvm.train.touch()


@pytest.mark.parametrize("error", [StartTimeout("90 s"), WaitTimeout("60 s")])
def test_an_attempt_that_timed_out_is_repeated_by_the_next_start(jvm: Jvm, error: OnceproofError) -> None:
    train = Training(error)
    assert with_archive(jvm, train) == jvm
    archive = with_archive(jvm, train).archive
    assert archive is not None
    assert archive.is_file()
    assert with_archive(jvm, train).archive == archive
    assert train.runs == 2


def test_a_failed_attempt_is_recorded_and_not_repeated(jvm: Jvm, tmp_path: Path) -> None:
    train = Training(ClusterError("no such class"))
    assert with_archive(jvm, train) == with_archive(jvm, train) == jvm
    assert train.runs == 1
    (failure,) = tmp_path.glob("cache/class-archive/*/failed.txt")
    assert failure.read_text(encoding="utf-8") == "no such class\n"
