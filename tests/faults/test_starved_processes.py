"""Starving real processes of processor time: by signals, and by control groups."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clusters.base.load import ask_for_more
from harness.clusters.powers.cpu import Throttle, cpu_seconds
from harness.errors import FaultError
from harness.machine import cgroup
from harness.machine.cgroup import Place, sweep_groups
from harness.machine.cgroup_cpu import CpuGroup, place_for
from harness.processes import child_process
from harness.waiting import wait_until

# Real processes.


@pytest.fixture
def burning(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = child_process.spawn([sys.executable, "-c", "while True: pass"], log=tmp_path / "log")
    yield process
    child_process.end(process)


def used_per_s(pid: int, for_s: float = 1.0) -> float:
    begun, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(for_s)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begun)


def test_signals_leave_a_process_its_share(burning: subprocess.Popen[bytes]) -> None:
    throttle = Throttle(
        burning.pid,
        0.1,
        stop=lambda: burning.send_signal(signal.SIGSTOP),
        go_on=lambda: burning.send_signal(signal.SIGCONT),
    )
    little = used_per_s(burning.pid, 3.0)
    throttle.end()
    assert little <= 0.15
    for _ in range(100):  # on a busy machine it may not get more CPU time than before, but nothing stops it
        assert not child_process.is_stopped(burning.pid), "it is left running"
        time.sleep(0.01)


def test_a_throttle_ends_with_its_process(burning: subprocess.Popen[bytes]) -> None:
    throttle = Throttle(burning.pid, 0.5, stop=lambda: None, go_on=lambda: None)
    child_process.end(burning)
    wait_until(lambda: not throttle._thread.is_alive(), 5.0, "the thread goes on")
    with pytest.raises(OSError, match=r".+"):
        cpu_seconds(burning.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="making a control group needs root")
def test_a_control_group_leaves_a_process_its_share(burning: subprocess.Popen[bytes]) -> None:
    place = place_for(burning.pid)
    if place is None:
        pytest.skip("this kernel has no control group with a CPU limit")
    group = CpuGroup.make(place, 0.1)
    try:
        group.take(burning.pid)
        little = used_per_s(burning.pid, 3.0)
        assert sweep_groups() == [], "the group of a running harness is left alone"
    finally:
        group.remove()
    assert little <= 0.15
    assert not group.folder.exists()
    # On a busy machine it may not get more CPU time than before, but it is in no group with a limit.
    assert group.folder.name not in Path(f"/proc/{burning.pid}/cgroup").read_text(encoding="utf-8")
    assert burning.poll() is None
    group.remove()  # idempotent


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose files are made by the test."""
    monkeypatch.setattr(cgroup, "_MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cgroup, "_PROCESSES", tmp_path / "proc")
    (tmp_path / "proc" / "7").mkdir(parents=True)
    return tmp_path


def test_groups_are_made_where_the_controller_is_delegated(machine: Path) -> None:
    one, two = machine / "one", machine / "two"
    membership = machine / "proc" / "7" / "cgroup"
    (machine / "mounts").write_text(f"cgroup {one} cgroup rw,cpu,cpuacct 0 0\ncgroup2 {two} cgroup2 rw 0 0\n")
    membership.write_text("4:memory:/deep/group\n1:cpu,cpuacct:/a\n0::/b/c\n")
    assert place_for(7) == Place(one / "a", one / "a", 1)
    membership.write_text("0::/b/c\n")
    assert place_for(7) is None, "no parent group delegates the CPU there"
    (two / "b").mkdir(parents=True)
    (two / "b" / "cgroup.subtree_control").write_text("memory cpu\n")
    assert place_for(7) == Place(two / "b", two / "b" / "c", 2)
    (machine / "mounts").write_text("tmpfs /tmp tmpfs rw 0 0\n")
    assert place_for(7) is None


def test_limits_are_written_in_the_format_of_each_version(machine: Path) -> None:
    first = CpuGroup.make(Place(machine, machine, 1), 0.25)
    assert (first.folder / "cpu.cfs_quota_us").read_text() == "25000\n"
    assert (first.folder / "cpu.cfs_period_us").read_text() == "100000\n"
    second = CpuGroup.make(Place(machine, machine, 2), 0.25)
    assert (second.folder / "cpu.max").read_text() == "25000 100000\n"


def test_groups_of_ended_harnesses_are_swept(machine: Path) -> None:
    top = machine / "groups"
    (machine / "mounts").write_text(f"cgroup {top} cgroup rw,cpu 0 0\n")
    own = child_process.identify(os.getpid())
    assert own is not None
    dead = top / "below" / f"onceproof-{own.pid}-{own.start_ticks - 1}-{own.pid_namespace}-ab12"
    alive = top / f"onceproof-{own.pid}-{own.start_ticks}-{own.pid_namespace}-ab12"
    in_a_container = (
        top / f"onceproof-{own.pid}-{own.start_ticks - 1}-{own.pid_namespace + 1}-ab12"
    )  # TRUST D1
    foreign = top / "onceproof-of-somebody"
    for folder in (dead, alive, in_a_container, foreign):
        folder.mkdir(parents=True)
    assert sweep_groups() == [dead]
    assert [f.exists() for f in (dead, alive, in_a_container, foreign)] == [False, True, True, True]


def test_a_group_that_is_still_in_use_is_waited_for(machine: Path) -> None:
    top = machine / "groups"
    (machine / "mounts").write_text(f"cgroup {top} cgroup rw,memory 0 0\n")
    own = child_process.identify(os.getpid())
    assert own is not None
    held = top / f"onceproof-{own.pid}-{own.start_ticks - 1}-{own.pid_namespace}-ab12"
    dying = (
        held / "of-a-dying-process"
    )  # a folder that is not empty cannot be removed, like a group with a process in it
    dying.mkdir(parents=True)
    leaves = threading.Timer(0.3, dying.rmdir)
    leaves.start()
    assert sweep_groups() == [held]
    leaves.join()
    assert not held.exists()


def test_the_load_ends_in_time_and_raises_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        ask_for_more(server.getsockname(), 0.5)  # never answered, as by a stopped process
        assert 0.4 <= time.monotonic() - begun < 5
        asked = server.accept()[0].recv(1 << 16)
        assert asked.count(b"onceproof-wire") > 10
        address = server.getsockname()
    with pytest.raises(FaultError, match="takes no load"):
        ask_for_more(address, 0.5)
