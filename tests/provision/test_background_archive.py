"""Spark's class archive made next to a command: at low priority, never outliving the command, never delaying it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.processes import child_process
from harness.processes.identity import Identity
from harness.provision import background_archive, spark_archive
from harness.provision.background_archive import Making, make_in_background
from harness.waiting import wait_until

ROOT = Path(__file__).parents[2]
LIMIT_S = 180.0  # for a Python of the lowest priority to start and to end on a busy machine

# Replaces the module that is started: the real module, whose work is `ACTION`.
MAKER = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from harness.provision import background_archive, spark_archive
def made(progress):
    draft = Path({folder!r}, "draft")
    draft.write_text(f"{{os.getpid()}} {{os.getpriority(os.PRIO_PROCESS, 0)}}")
    draft.rename(Path({folder!r}, "began"))
    {action}
spark_archive.spark_archive = made
sys.exit(background_archive.main())
"""

COMMAND = """
import sys
from harness.provision import background_archive, spark_archive
background_archive._MODULE = "maker"
spark_archive.with_harness = lambda: sys.argv[1]
spark_archive.find_spark_archive = spark_archive.obstacle = lambda: None
background_archive.make_in_background(print, memory_needed_mib=0)
sys.stdin.read()
"""

Start = Callable[[str], tuple[Making, list[str]]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start a maker that does `action`; return it, and the lines that it reports."""

    def run(action: str) -> tuple[Making, list[str]]:
        _write_maker(tmp_path, action)
        monkeypatch.setattr(background_archive, "_MODULE", "maker")
        monkeypatch.setattr(spark_archive, "with_harness", lambda: str(tmp_path))
        monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: None)
        monkeypatch.setattr(spark_archive, "obstacle", lambda: None)
        said: list[str] = []
        making = make_in_background(said.append, memory_needed_mib=0)
        assert making is not None
        assert said == []
        return making, said

    return run


def _write_maker(folder: Path, action: str) -> None:
    program = MAKER.format(root=str(ROOT), folder=str(folder), action=action)
    (folder / "maker.py").write_text(program, encoding="utf-8")


def _began(folder: Path) -> tuple[Identity, int]:
    """Return the process that makes the archive, and its niceness."""
    began = folder / "began"
    wait_until(began.exists, LIMIT_S, "the maker did not begin")
    pid, nice = began.read_text(encoding="utf-8").split()
    found = child_process.identify(int(pid))
    assert found is not None
    return found, int(nice)


def test_the_maker_has_the_lowest_priority_and_dies_with_the_command(tmp_path: Path) -> None:
    _write_maker(tmp_path, "time.sleep(300)")
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path)], stdin=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as command:  # fmt: skip
        maker, nice = _began(tmp_path)
        assert nice == 19
        command.send_signal(signal.SIGKILL)
    wait_until(lambda: not maker.alive(), 10.0, "the maker outlived its command")


def test_an_archive_that_exists_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: SimpleNamespace())
    said: list[str] = []
    assert make_in_background(said.append) is None
    assert said == []


def test_an_obstacle_is_reported_in_one_line_with_reason_cost_and_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: None)
    monkeypatch.setattr(spark_archive, "obstacle", lambda: "/cache cannot be written")
    said: list[str] = []
    assert make_in_background(said.append) is None
    assert len(said) == 1
    for part in ("no class archive", "seconds longer", "/cache cannot be written", "./onceproof setup"):
        assert part in said[0]


def test_the_archive_is_not_made_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: None)
    monkeypatch.setattr(spark_archive, "obstacle", lambda: None)
    said: list[str] = []
    assert make_in_background(said.append, memory_needed_mib=1 << 40) is None
    assert len(said) == 1
    assert "MiB of memory available" in said[0]


def test_an_unwritable_cache_folder_does_not_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: None)
    monkeypatch.setattr(spark_archive, "obstacle", lambda: None)
    (tmp_path / "cache").touch()
    said: list[str] = []
    assert make_in_background(said.append, memory_needed_mib=0) is None
    assert len(said) == 1
    assert "./onceproof setup" in said[0]


def test_the_end_of_a_command_waits_for_the_archive(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making, said = start(f"while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n    return 1")
    _began(tmp_path)
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: SimpleNamespace())
    (tmp_path / "go").touch()
    making.finish(LIMIT_S)
    assert making.process.returncode == 0
    assert all("waiting up to" in line for line in said)


def test_the_wait_has_a_limit(start: Start, tmp_path: Path) -> None:
    making, said = start("time.sleep(300)")
    maker, _ = _began(tmp_path)
    making.finish(0.1)
    assert not maker.alive()
    assert ["waiting up to" in said[0], "not ready in time" in said[1]] == [True, True]
    assert len(said) == 2


def test_ctrl_c_skips_the_wait_and_does_not_interrupt_the_command(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    making, said = start("time.sleep(300)")
    maker, _ = _began(tmp_path)
    monkeypatch.setattr(background_archive, "wait_until", interrupted)
    making.finish()
    assert not maker.alive()
    assert len(said) == 2


def test_a_failure_is_reported_in_one_line_at_the_end(start: Start) -> None:
    making, said = start("raise SystemExit(1)")
    making.process.wait(LIMIT_S)
    making.finish()
    assert len(said) == 1
    assert "could not be made" in said[0]
