"""Memory limits: the fault on nodes in memory, the limit on files made by the test and on real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.starve import Starve
from harness.clusters.powers.memory import trouble
from harness.contracts import Memory, MemoryStarvable, Node
from harness.errors import FaultError, UsageError
from harness.machine import cgroup
from harness.machine.cgroup import Group, Home, Place, home_of, place_for
from harness.machine.cgroup_memory import MB, MemoryGroup
from harness.processes import child_process
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from tests.fake_arena import IMPATIENT, FakeArena, FakeCluster, FakeNode, make_arena

FAULT = Starve(memory_mb=8)


@dataclass
class ForgetfulNode(FakeNode):
    """Has 150 MB, a tenth of it page cache. Under the limit a `mute` node accepts no load, a `mortal` node ends, and a
    `doomed` node ends as soon as the limit is removed.
    """

    left_mb: float | None = None
    always_short: bool = False
    mute: bool = False
    mortal: bool = False
    doomed: bool = False

    def starve(self, cpu_share: float) -> str:
        raise AssertionError("CPU time is not limited")

    def feed(self) -> None:
        raise AssertionError("CPU time is not limited")

    def cpu_under_load(self, for_s: float) -> float:
        raise AssertionError("CPU time is not limited")

    def take_memory(self, left_mb: float) -> str:
        self.calls.append("take_memory")
        self.left_mb = None if self.stubborn else left_mb
        return "cgroup"

    def give_memory(self) -> None:
        self.calls.append("give_memory")
        self.left_mb = None

    def memory_under_load(self, for_s: float) -> Memory:
        if self.doomed and "give_memory" in self.calls and "restart" not in self.calls:
            self.alive = False
        if self.left_mb is None:
            return Memory(150, 15, None, int(self.always_short))
        if self.mortal:
            self.alive = False
        if self.mute or self.mortal:
            raise FaultError(f"{self.name} takes no load")
        return Memory(135 + self.left_mb, self.left_mb, 135 + self.left_mb, 300)


def arena_of(patience: float = 1.0) -> tuple[FakeArena, list[ForgetfulNode]]:
    plain = make_arena()
    nodes = [ForgetfulNode(node.name, node.peers) for node in plain.cluster.brokers]
    cluster = FakeCluster(list(nodes), plain.cluster.replicas)
    return FakeArena(cluster, plain.workers, patience=patience), nodes


def test_passes_the_check_of_its_contract() -> None:
    arena, nodes = arena_of()
    checked = check_fault(FAULT, arena, nodes[:2])
    assert checked.bite.proof.startswith(
        "broker-1 had 150 MB (15 of page cache), then under load 143 (8) of 143, which was reached 300 times; broker-2"
    )
    assert checked.bite.measured["refused_before"] == 0
    assert checked.healing.measured["refused_after"] == 0
    assert nodes[0].calls[:2] == ["take_memory", "give_memory"]


@pytest.mark.parametrize("flaw", ["stubborn", "always_short", "mute"])
def test_a_fault_without_effect_does_not_bite_and_is_undone(flaw: str) -> None:
    arena, nodes = arena_of()
    setattr(nodes[1], flaw, True)
    with FAULT.hold(arena, [nodes[1]]) as bite:
        assert not bite.bit, bite.proof
    assert "give_memory" in nodes[1].calls
    with FAULT.hold(arena, []) as bite:
        assert not bite.bit


def test_a_node_that_ends_under_the_limit_is_started_again() -> None:
    arena, nodes = arena_of()
    nodes[1].mortal = True
    with FAULT.hold(arena, [nodes[1]]) as bite:
        assert bite.bit
        assert bite.proof == "broker-2 ended when memory was refused; broker-2 takes no load"
        assert bite.measured == {"ended": 1.0}
        assert not nodes[1].running()
    assert nodes[1].calls[-2:] == ["give_memory", "restart"]
    assert nodes[1].running()


def test_a_node_that_ends_after_the_limit_is_started_again() -> None:
    """A refusal under the limit may end the process, but only after the limit: it needs memory to end."""
    arena, nodes = arena_of()
    nodes[1].doomed = True
    with FAULT.hold(arena, [nodes[1]]) as bite:
        assert bite.bit, bite.proof
        assert nodes[1].running()
    assert nodes[1].calls[-2:] == ["give_memory", "restart"]
    assert FAULT.healed(arena, [nodes[1]]).healed


def test_a_node_that_accepts_no_load_after_the_limit_is_killed_and_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arena, nodes = arena_of(IMPATIENT)

    def refuse(for_s: float) -> Memory:
        raise FaultError("it takes no load")

    with FAULT.hold(arena, [nodes[1]]):
        monkeypatch.setattr(nodes[1], "memory_under_load", refuse)
    assert nodes[1].calls[-3:] == ["give_memory", "kill", "restart"]


def test_healing_is_not_claimed_too_early() -> None:
    arena, nodes = arena_of(IMPATIENT)
    nodes[1].left_mb = 8
    assert "broker-2 still short of memory" in FAULT.healed(arena, [nodes[1]]).proof
    nodes[1].left_mb, nodes[1].always_short = None, True
    assert "broker-2 still short of memory" in FAULT.healed(arena, [nodes[1]]).proof


def test_bad_settings_and_nodes_without_the_power_are_named() -> None:
    for wrong in (1, 1000):
        with pytest.raises(UsageError, match=f"memory_mb={wrong}"):
            Starve(memory_mb=wrong)
    arena, _ = arena_of()
    plain: list[Node] = [arena.workers[0]]
    assert not isinstance(plain[0], MemoryStarvable)
    with (
        pytest.raises(FaultError, match="memory of producer-1 cannot be taken away"),
        FAULT.hold(arena, plain),
    ):
        pass
    assert (str(Starve()), str(FAULT)) == ("starve", "starve-memory")


# Files made by the test.


def group(folder: Path, version: int, **files: str) -> MemoryGroup:
    for name, words in files.items():
        (folder / name.replace("__", ".")).write_text(words)
    return MemoryGroup(Home(folder, version))


STAT = f"anon 1\nactive_file {10 * MB}\ninactive_file {20 * MB}\n"


def test_version_1_is_limited_without_its_killer(tmp_path: Path) -> None:
    memory = group(
        tmp_path, 1, memory__usage_in_bytes=f"{100 * MB}\n", memory__stat=STAT, memory__failcnt="7\n",
        memory__limit_in_bytes="9223372036854771712\n",
    )  # fmt: skip
    assert memory.look() == Memory(100, 30, None, 7)
    memory.squeeze(8)
    assert (tmp_path / "memory.oom_control").read_text() == "1\n"
    assert memory.look().limit_mb == 100 - 30 + 8
    memory.release()
    assert (tmp_path / "memory.oom_control").read_text() == "0\n"
    assert (tmp_path / "memory.limit_in_bytes").read_text() == "-1\n"


@pytest.mark.parametrize(("cache_mb", "left_mb"), [(30, 8), (10, 5), (1, 1), (0, 1)])
def test_half_of_a_small_page_cache_goes(tmp_path: Path, cache_mb: int, left_mb: int) -> None:
    stat = f"active_file 0\ninactive_file {cache_mb * MB}\n"
    memory = group(
        tmp_path, 1, memory__usage_in_bytes=f"{100 * MB}\n", memory__stat=stat, memory__failcnt="0\n"
    )
    memory.squeeze(8)
    assert memory.look().limit_mb == 100 - cache_mb + left_mb


def test_version_2_is_slowed_down(tmp_path: Path) -> None:
    memory = group(
        tmp_path, 2, memory__current=f"{100 * MB}\n", memory__stat=STAT, memory__high="max\n",
        memory__events="low 0\nhigh 9\nmax 0\noom 0\n",
    )  # fmt: skip
    assert memory.look() == Memory(100, 30, None, 9)
    memory.squeeze(8)
    assert memory.look().limit_mb == 78
    memory.release()
    assert memory.look().limit_mb is None


def test_a_limit_that_cannot_be_set_is_reported_and_undone(tmp_path: Path) -> None:
    memory = group(tmp_path, 1, memory__stat=STAT)
    with pytest.raises(FaultError, match=f"memory of {tmp_path} cannot be limited: "):
        memory.squeeze(8)
    assert (tmp_path / "memory.oom_control").read_text() == "0\n"
    assert (tmp_path / "memory.limit_in_bytes").read_text() == "-1\n"


def test_the_group_of_a_process_is_found_by_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cgroup, "_PROCESSES", tmp_path / "proc")
    one, two = tmp_path / "one", tmp_path / "two"
    (tmp_path / "proc" / "7").mkdir(parents=True)
    membership = tmp_path / "proc" / "7" / "cgroup"
    (tmp_path / "mounts").write_text(f"cgroup {one} cgroup rw,memory 0 0\ncgroup2 {two} cgroup2 rw 0 0\n")
    membership.write_text("4:memory:/a/b\n1:cpu:/c\n0::/d/e\n")
    assert home_of(7, "memory") == Home(one / "a" / "b", 1)
    assert place_for(7, "memory") == Place(one / "a" / "b", one / "a" / "b", 1)
    assert home_of(7, "blkio") is None
    assert home_of(8, "memory") is None, "there is no such process"
    (two / "d" / "e").mkdir(parents=True)
    (two / "d" / "e" / "cgroup.controllers").write_text("io pids\n")
    assert home_of(7, "blkio") == Home(two / "d" / "e", 2)
    assert place_for(7, "blkio") is None, "no parent group delegates it there"
    (two / "d" / "cgroup.subtree_control").write_text("io\n")
    assert place_for(7, "blkio") == Place(two / "d", two / "d" / "e", 2)


# Real processes.

NO_GROUPS = trouble()
HUNGRY = """
import sys, time
sys.stdin.readline()
held = bytearray(64 << 20)
print("full", flush=True)
time.sleep(600)
"""


@pytest.fixture
def hungry(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process that allocates 64 MB when it is sent a line, and then prints a line."""
    process = child_process.spawn([sys.executable, "-c", HUNGRY], log=tmp_path / "log", stdin=subprocess.PIPE)
    yield process, tmp_path / "log"
    child_process.end(process)


@pytest.mark.skipif(NO_GROUPS is not None, reason=str(NO_GROUPS))
def test_a_process_that_needs_more_than_the_limit_waits(hungry: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, log = hungry
    place = place_for(process.pid, "memory")
    assert place is not None
    if place.version == 2:
        pytest.skip("version 2 only slows the process down by some seconds")
    own = Group.made(place, {})
    try:
        own.take(process.pid)
        memory = MemoryGroup(Home(own.folder, place.version))
        memory.squeeze(8)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        wait_until(lambda: memory.look().refused > 0, 20.0, "the limit is not reached")
        time.sleep(1.0)
        assert process.poll() is None, "it is not killed"
        assert log.read_text() == ""
        seen = memory.look()
        assert seen.limit_mb is not None
        assert seen.has_mb <= seen.limit_mb + 1
        memory.release()
        wait_until(lambda: log.read_text() == "full\n", 20.0, "it does not go on")
        assert memory.look().limit_mb is None
    finally:
        own.remove()
    assert not own.folder.exists()
