"""Standby processes carry out their orders, are replaced if they have ended, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.testing.leftovers import processes_of
from harness.waiting import wait_until
from harness.workers import main
from harness.workers.spec_file import write_spec
from harness.workers.standby import Standby
from harness.workers.worker import environment
from tests.workers.specs import SPECS

LIMIT_S = 60.0


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[Standby]:
    with Standby(tmp_path, environment(), size=2) as made:
        yield made


def filled(standby: Standby) -> None:
    wait_until(lambda: len(standby._ready) == 2, LIMIT_S, lambda: f"{len(standby._ready)} are ready")


def broken_order(folder: Path) -> tuple[Path, Path]:
    """Return a specification whose worker fails with one line, and the file for that line."""
    (folder / "r.0.events").symlink_to("/dev/full")
    spec = replace(SPECS["final_reader"]("r"), writer="r.0", ledger=str(folder), board=str(folder / "board"))
    write_spec(folder / "spec.json", spec)
    return folder / "spec.json", folder / "out"


def test_no_process_is_ready_at_first(standby: Standby, tmp_path: Path) -> None:
    assert standby.begin(tmp_path / "spec.json", tmp_path / "out", {}) is None


def test_a_process_carries_out_its_order(standby: Standby, tmp_path: Path) -> None:
    standby._take()
    filled(standby)
    spec, log = broken_order(tmp_path)
    process = standby.begin(spec, log, {})
    assert process is not None
    assert process.wait(LIMIT_S) == main.NO_LEDGER
    assert "cannot append to the ledger" in log.read_text()


def test_an_ended_process_is_skipped(standby: Standby, tmp_path: Path) -> None:
    standby._take()
    filled(standby)
    dead = standby._ready[0]
    os.kill(dead.pid, signal.SIGKILL)
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    process = standby.begin(*broken_order(tmp_path), {})
    assert process is not None
    assert process.pid != dead.pid
    assert process.wait(LIMIT_S) == main.NO_LEDGER


def test_closing_leaves_no_process(tmp_path: Path) -> None:
    with Standby(tmp_path, environment(), size=2) as standby:
        standby._take()
        filled(standby)
        assert len(processes_of(tmp_path)) >= 2
    assert processes_of(tmp_path) == []


def test_a_process_without_an_order_ends_by_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness.workers.main", main.WAITS, str(tmp_path)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
