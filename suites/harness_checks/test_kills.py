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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`--times 100` kills a hundred harnesses."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--times") or KILLS))


@pytest.mark.conformance
def test_nothing_is_left_after_a_kill(tmp_path: Path, seed: int) -> None:
    before = control_groups()
    log = tmp_path / "victim.log"
    with log.open("wb") as output:
        victim = subprocess.Popen(
            [sys.executable, "-m", "suites.harness_checks._victim", str(tmp_path), str(seed)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        time.sleep(random.Random(seed).uniform(2.0, LONGEST_S))
        assert victim.poll() is None, f"it ended by itself: {log.read_text()[-2000:]}"
        assert processes_of(tmp_path), "nothing runs that could be left behind"
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    doing, cluster = tmp_path / "doing", tmp_path / "cluster"
    print(f"\nkilled while: {doing.read_text() if doing.exists() else 'not begun'}")
    wait_until(lambda: not processes_of(tmp_path), 10.0, lambda: f"still running: {processes_of(tmp_path)}")
    assert mounts_of(tmp_path) == []
    begun = (cluster / "onceproof-cluster").exists()  # killed sooner, it has made nothing yet
    assert (cluster in sweep_stale()) == begun
    assert not list(cluster.glob("*/data"))
    assert control_groups() <= before
