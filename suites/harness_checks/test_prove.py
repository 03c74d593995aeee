"""`prove` leaves nothing behind if it is killed half way."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import ownership
from harness.testing.leftovers import processes_of
from harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.smoke
def test_a_killed_prove_leaves_no_process_behind(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    prove = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "prove", "--quick", "--runs", str(runs)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: list(runs.glob("*/*/ledger/*.attempts")), 120.0, "no producer started")
        children = Path(f"/proc/{prove.pid}/task").glob("*/children")
        pids = [pid for task in children for pid in task.read_text(encoding="ascii").split()]
        assert len(processes_of(runs)) >= 6, "three brokers, a proxy and workers should run now"
        assert len(pids) >= 6
    finally:
        prove.send_signal(signal.SIGKILL)
        prove.wait()
    wait_until(lambda: not processes_of(runs), 10.0, lambda: f"still running: {processes_of(runs)}")
    # The command line of Spark's JVM does not name the folder; it is a child of prove like the others.
    wait_until(
        lambda: not any(Path("/proc", pid).exists() for pid in pids),
        10.0,
        f"some of {pids} are still running",
    )
    swept = ownership.sweep(runs)
    assert swept
    assert not list(runs.glob(".clusters/*/*/data"))
