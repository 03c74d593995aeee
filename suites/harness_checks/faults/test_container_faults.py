"""Control groups on brokers in containers: less memory, limited disk throughput, also across restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faults._disk import wait_takes_records
from faults.slow_disk import SlowDisk
from faults.starve import Starve
from harness.clusters.base.options import Options
from harness.clusters.containers.cluster import DockerCluster
from harness.clusters.containers.nodes import ContainerBroker
from harness.clusters.powers import memory
from harness.contracts import DiskHarm, DiskThrottleable, Fault, MemoryStarvable, TopicSettings
from harness.errors import FaultError
from harness.machine import cgroup_io
from harness.machine.cgroup_memory import MemoryGroup
from harness.provision.docker.engine import trouble
from harness.targets import leader_of
from harness.testing.check_fault import check_fault
from suites.support.arena import TOPIC, BareArena

NO_ENGINE, NO_MEMORY = trouble(), memory.trouble()
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(NO_ENGINE is not None, reason=str(NO_ENGINE)),
    pytest.mark.skipif(NO_MEMORY is not None, reason=str(NO_MEMORY)),
]
FSYNC, READ = SlowDisk(harm="fsync", rate_kb_s=256), SlowDisk(harm="read", rate_kb_s=256)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareArena]:
    with DockerCluster(tmp_path_factory.mktemp("docker") / "cluster", combined=True) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        yield BareArena(cluster)


@pytest.fixture
def node(arena: BareArena) -> ContainerBroker:
    (found,) = leader_of().pick(arena)
    assert isinstance(found, ContainerBroker)
    return found


def _must_be_on_a_disk(node: ContainerBroker) -> None:
    if why := cgroup_io.trouble(node.data):
        pytest.skip(why)


@pytest.mark.parametrize("fault", [FSYNC, READ, Starve(memory_mb=8)], ids=str)
def test_bites_and_heals(
    arena: BareArena, node: ContainerBroker, fault: Fault, record_property: Callable[[str, object], None]
) -> None:
    assert isinstance(node, DiskThrottleable)
    assert isinstance(node, MemoryStarvable)
    if isinstance(fault, SlowDisk):
        _must_be_on_a_disk(node)
    checked = check_fault(fault, arena, [node])
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault} ({checked.bite.way}): {checked.bite.proof} | {checked.healing.proof}")


def test_a_broker_short_of_memory_that_is_killed_starts_and_is_short_of_it_again(
    arena: BareArena, node: ContainerBroker
) -> None:
    """Kill and start twice: the page cache of the earlier container does not count for the new one."""
    fault = Starve(memory_mb=8)
    for _ in range(2):
        with fault.hold(arena, [node]) as bite:
            assert bite.bit, bite.proof
            print(f"\n{bite.proof}")
            node.kill()
            node.restart()
            home = node.memory_home()
            assert home is not None
            assert MemoryGroup(home).look().limit_mb is not None
        healing = fault.healed(arena, [node])
        assert healing.healed, healing.proof
        assert node.residue() == []


@pytest.mark.parametrize("fault", [FSYNC, READ], ids=str)
def test_a_rate_outlives_a_restart_and_slows_nothing_else(
    arena: BareArena, node: ContainerBroker, fault: SlowDisk
) -> None:
    _must_be_on_a_disk(node)
    harm, other = DiskHarm.SLOW_FSYNC, DiskHarm.SLOW_READ
    if fault.harm == "read":
        harm, other = other, harm
    with fault.hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        node.kill()
        node.restart()
        wait_takes_records(arena, node)
        word = "writes" if fault.harm == "fsync" else "reads"
        assert node.residue() == [f"{word} of {node.name} are throttled"]
        assert node.disk_rate_kb_s(harm, 256) <= 1.3 * 256
        in_memory_ms = min(node.disk_latency_ms(DiskHarm.SLOW_APPEND) for _ in range(7))
        print(f"\n{bite.proof}; a plain append takes {in_memory_ms:.1f} ms meanwhile")
        assert in_memory_ms < 100, "an append goes to memory"
        if fault.harm == "read":
            assert node.disk_rate_kb_s(other, 256) > 2 * 256
        for healthy in arena.nodes():
            assert isinstance(healthy, ContainerBroker)
            assert healthy is node or healthy.disk_rate_kb_s(harm, 256) > 2 * 256
    healing = fault.healed(arena, [node])
    assert healing.healed, healing.proof
    assert arena.cluster.residue() == []


def test_a_rate_that_is_taken_back_while_the_broker_is_down_does_not_come_back(
    arena: BareArena, node: ContainerBroker
) -> None:
    _must_be_on_a_disk(node)
    with FSYNC.hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        node.kill()
    node.restart()
    assert FSYNC.healed(arena, [node]).healed
    assert arena.cluster.residue() == []


def test_a_disk_that_cannot_be_throttled_is_an_error(
    arena: BareArena, node: ContainerBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FaultError, match=f"the disk of {node.name} cannot be slow_append by a rate"):
        node.throttle_disk(DiskHarm.SLOW_APPEND, 256)
    monkeypatch.setattr(node, "options", Options(fuse=True))
    with pytest.raises(FaultError, match=f"the disk of {node.name} cannot be throttled: it is behind FUSE"):
        node.throttle_disk(DiskHarm.SLOW_FSYNC, 256)
