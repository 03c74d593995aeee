"""A harness that is killed at any moment, inside a fault's window or while its cluster starts, leaves nothing behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.clusters.base.abandoned_clusters import sweep_stale
from harness.testing.leftovers import control_groups, mounts_of, processes_of
from harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
KILLS = 20
LONGEST_S = 25.0  # from the start of the process: its cluster is up after about ten seconds
START_LIMIT_S = 180.0  # until a fault begins, also on a busy machine
LONGEST_IN_FAULTS_S = 8.0  # from the beginning of the first fault: most hold for less


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each seed; `--times 100` kills a hundred harnesses."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--times") or KILLS))


def wait_for_the_moment(folder: Path, seed: int) -> None:
    """Wait for a random time; for every other seed counted from the first fault, which a busy machine may reach late."""
    chance, doing = random.Random(seed), folder / "doing"
    if seed % 2 == 0:
        time.sleep(chance.uniform(2.0, LONGEST_S))
        return
    wait_until(lambda: doing.exists() and " on " in doing.read_text(), START_LIMIT_S, "no fault has begun")
    time.sleep(chance.uniform(0.0, LONGEST_IN_FAULTS_S))


@pytest.mark.conformance
def test_nothing_is_left_after_a_kill(tmp_path: Path, seed: int) -> None:
    log = tmp_path / "victim.log"
    with log.open("wb") as output:
        victim = subprocess.Popen(
            [sys.executable, "-m", "suites.harness_checks._victim", str(tmp_path), str(seed)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for_the_moment(tmp_path, seed)
        assert victim.poll() is None, f"it ended by itself: {log.read_text()[-2000:]}"
        assert processes_of(tmp_path), "nothing runs that could be left behind"
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    doing, cluster = tmp_path / "doing", tmp_path / "cluster"
    print(f"\nkilled while: {doing.read_text() if doing.exists() else 'not begun'}")
    wait_until(lambda: not processes_of(tmp_path), 10.0, lambda: f"still running: {processes_of(tmp_path)}")
    assert mounts_of(tmp_path) == []
    begun = (cluster / "onceproof-cluster").exists()  # if killed sooner, it has created nothing yet
    assert (cluster in sweep_stale()) == begun
    assert not list(cluster.glob("*/data"))
    assert control_groups(victim.pid) == set()
