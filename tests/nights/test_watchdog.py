"""The watchdog ends what hangs, and only that; leaks are what a stopped cluster still uses."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.contracts import Mode
from harness.nights.leaks import Usage, leaks
from harness.nights.watchdog import StuckRun, limit_s, watched
from harness.runtime import signals
from harness.scenario import Scenario, Timings
from suites.scenarios.pipelines import soak


@pytest.fixture(autouse=True)
def _signals_raise() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    signals.install()
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_block_that_hangs_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(StuckRun, match="did not end within 0 s"), watched(0.2):
        time.sleep(60)
    assert time.monotonic() - began < 50


def test_a_block_that_ends_in_time_is_left_alone() -> None:
    with watched(0.3):
        pass
    time.sleep(0.6)


def test_the_user_s_interruption_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt), watched(60):
        signal.raise_signal(signal.SIGTERM)


def test_the_limit_is_longer_than_all_steps() -> None:
    plain = Scenario(name="x", mode=Mode.AT_LEAST_ONCE)
    assert limit_s(plain) > sum(vars(Timings()).values())
    assert limit_s(soak(10)) > 600 + limit_s(plain)


def test_processes_and_mounts_of_a_stopped_cluster_are_leaks() -> None:
    now = Usage(("java -cp x",), ("fuse /runs/.clusters/1",), 10, 100)
    assert len(leaks(None, now)) == 2


def test_more_files_and_memory_than_before_are_leaks() -> None:
    before, after = Usage((), (), 50, 300), Usage((), (), 150, 900)
    assert [line.split(" more")[0] for line in leaks(before, after)] == ["100", "600 MB"]
    assert leaks(before, Usage((), (), 60, 350)) == []
    assert leaks(None, after) == []


def test_the_usage_of_this_process_is_measured(tmp_path: Path) -> None:
    usage = Usage.now(tmp_path)
    assert (usage.processes, usage.mounts) == ((), ())
    assert usage.open_files > 3
    assert usage.memory_mb > 10
