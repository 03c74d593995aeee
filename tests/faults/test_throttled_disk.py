"""A disk with a rate: the fault on nodes in memory, the limit on files made by the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from faults.slow_disk import SlowDisk
from harness.contracts import DiskHarm, DiskThrottleable
from harness.errors import ClusterError, FaultError, UsageError
from harness.machine.cgroup import Home
from harness.machine.cgroup_io import Io, IoGroup, disk_of
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena, FakeCluster, FakeNode, make_arena

FSYNC, READ = SlowDisk(harm="fsync", rate_kb_s=256), SlowDisk(harm="read", rate_kb_s=64)


@dataclass
class ThrottledNode(FakeNode):
    """Passes 20,000 KB a second, or as much as the limit allows."""

    free_kb_s: float = 20_000.0
    rates: dict[DiskHarm, int] = field(default_factory=dict)

    def throttle_disk(self, harm: DiskHarm, rate_kb_s: int) -> str:
        self.calls.append(f"throttle {harm}")
        if not self.stubborn:
            self.rates[harm] = rate_kb_s
        return "blkio"

    def release_disk(self, harm: DiskHarm) -> None:
        self.calls.append(f"release {harm}")
        self.rates.pop(harm, None)

    def disk_rate_kb_s(self, harm: DiskHarm, size_kb: int) -> float:
        if not self.alive:
            raise ClusterError(f"{self.name} is not there")
        return min(self.free_kb_s, self.rates.get(harm, self.free_kb_s))


@pytest.fixture
def arena() -> FakeArena:
    plain = make_arena()
    nodes: list[FakeNode] = [ThrottledNode(node.name, node.peers) for node in plain.cluster.brokers]
    return FakeArena(FakeCluster(nodes, plain.cluster.replicas), plain.workers)


@pytest.fixture
def node(arena: FakeArena) -> ThrottledNode:
    found = arena.cluster.brokers[1]
    assert isinstance(found, ThrottledNode)
    return found


@pytest.mark.parametrize(("fault", "rate"), [(FSYNC, 256), (READ, 64)], ids=str)
def test_passes_the_check_of_its_contract(
    arena: FakeArena, node: ThrottledNode, fault: SlowDisk, rate: int
) -> None:
    checked = check_fault(fault, arena, [node])
    assert checked.bite.proof == f"{fault.harm} at broker-2 fell from 20000 to {rate} KB/s (quickest of 2)"
    assert checked.bite.measured == {"before_kb_s": 20000.0, "during_kb_s": rate}
    assert checked.bite.way == "blkio"
    assert checked.healing.measured["after_kb_s"] == 20000.0
    assert node.calls == [f"throttle slow_{fault.harm}", f"release slow_{fault.harm}"] * 2


def test_a_fault_without_effect_does_not_bite_and_is_undone(arena: FakeArena, node: ThrottledNode) -> None:
    node.stubborn = True
    with FSYNC.hold(arena, [node]) as bite:
        assert not bite.bit, bite.proof
    assert node.calls[-1] == "release slow_fsync"
    with FSYNC.hold(arena, []) as bite:
        assert not bite.bit


def test_a_disk_that_was_slow_before_does_not_bite(arena: FakeArena, node: ThrottledNode) -> None:
    node.free_kb_s = 400.0
    with FSYNC.hold(arena, [node]) as bite:
        assert not bite.bit
        assert bite.measured == {"before_kb_s": 400.0, "during_kb_s": 256.0}


def test_healing_is_not_claimed_too_early(arena: FakeArena, node: ThrottledNode) -> None:
    arena.patience = IMPATIENT
    node.rates[DiskHarm.SLOW_FSYNC] = 256
    assert "fsync still slow at broker-2 256 KB/s" in FSYNC.healed(arena, [node]).proof
    assert READ.healed(arena, [node]).healed, "reads are not slow"
    node.alive = False
    assert not FSYNC.healed(arena, [node]).healed


def test_bad_settings_and_nodes_without_the_power_are_named() -> None:
    for wrong in (8, 4000):
        with pytest.raises(UsageError, match=f"rate_kb_s={wrong} cannot be measured; choose 32 to 800"):
            SlowDisk(harm="fsync", rate_kb_s=wrong)
    with pytest.raises(UsageError, match="appends go to memory"):
        SlowDisk(rate_kb_s=256)
    plain = make_arena()
    assert not isinstance(plain.cluster.brokers[0], DiskThrottleable)
    for bare in (plain.cluster.brokers[0], SimpleNamespace(name="broker-1")):
        with (
            pytest.raises(FaultError, match="the disk of broker-1 cannot be throttled"),
            FSYNC.hold(plain, [bare]),
        ):
            pass
    assert (str(FSYNC), str(READ)) == ("slow_disk-fsync-rate", "slow_disk-read-rate")


# Files made by the test.


def test_version_1_has_a_file_for_each_way(tmp_path: Path) -> None:
    group, writes = IoGroup(Home(tmp_path, 1), "8:0"), tmp_path / "blkio.throttle.write_bps_device"
    assert group.limited(Io.WRITE) is None, "no such group"
    group.limit(Io.WRITE, 1024)
    assert writes.read_text() == "8:0 1024\n"
    writes.write_text("9:0 77\n8:0 1024\n")  # as the kernel lists them, another disk first
    assert (group.limited(Io.WRITE), group.limited(Io.READ)) == (1024, None)
    group.limit(Io.WRITE, None)
    assert writes.read_text() == "8:0 0\n"


def test_version_2_has_one_file(tmp_path: Path) -> None:
    group, file = IoGroup(Home(tmp_path, 2), "8:0"), tmp_path / "io.max"
    group.limit(Io.READ, 2048)
    assert file.read_text() == "8:0 rbps=2048\n"
    file.write_text("8:0 rbps=2048 wbps=max riops=max wiops=max\n")
    assert (group.limited(Io.READ), group.limited(Io.WRITE)) == (2048, None)
    group.limit(Io.READ, None)
    assert file.read_text() == "8:0 rbps=max\n"


def test_a_limit_that_cannot_be_set_raises(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match=f"writes of {tmp_path}/gone cannot be limited: "):
        IoGroup(Home(tmp_path / "gone", 1), "8:0").limit(Io.WRITE, 1024)
    with pytest.raises(FaultError, match="/proc is on no disk"):
        disk_of(Path("/proc"))
