"""Control groups on brokers in containers: less memory, limited disk throughput, also across restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faults._disk import wait_takes_records
from faults.slow_disk import SlowDisk
from faults.starve import Starve
from harness.clusters.containers.broker import ContainerBroker
from harness.clusters.containers.cluster import DockerCluster
from harness.clusters.containers.disk_rate import Throttled
from harness.clusters.powers import memory
from harness.clusters.powers.memory import Squeezed
from harness.contracts import DiskHarm, DiskThrottleable, Fault, MemoryStarvable, Node, TopicSettings
from harness.errors import FaultError
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


def _throttled(node: Node) -> Throttled:
    """Return the node; skip the test if its disk cannot be throttled, with the reason."""
    if isinstance(node, Throttled):
        return node
    assert isinstance(node, ContainerBroker)
    pytest.skip(node.lacks[DiskThrottleable])


@pytest.mark.parametrize("fault", [FSYNC, READ, Starve(memory_mb=8)], ids=str)
def test_bites_and_heals(
    arena: BareArena, node: ContainerBroker, fault: Fault, record_property: Callable[[str, object], None]
) -> None:
    assert isinstance(node, MemoryStarvable)
    if isinstance(fault, SlowDisk):
        assert isinstance(_throttled(node), DiskThrottleable)
    checked = check_fault(fault, arena, [node])
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault} ({checked.bite.way}): {checked.bite.proof} | {checked.healing.proof}")


def test_a_broker_short_of_memory_that_is_killed_starts_and_is_short_of_it_again(
    arena: BareArena, node: ContainerBroker
) -> None:
    """Kill and start twice: the page cache of the earlier container does not count for the new one."""
    fault = Starve(memory_mb=8)
    assert isinstance(node, Squeezed)
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
    node = _throttled(node)
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
        in_memory_ms = min(node.produce_round_trip_ms() for _ in range(7))
        print(f"\n{bite.proof}; a plain append takes {in_memory_ms:.1f} ms meanwhile")
        assert in_memory_ms < 100, "an append goes to memory"
        if fault.harm == "read":
            assert node.disk_rate_kb_s(other, 256) > 2 * 256
        for healthy in arena.nodes():
            assert healthy is node or _throttled(healthy).disk_rate_kb_s(harm, 256) > 2 * 256
    healing = fault.healed(arena, [node])
    assert healing.healed, healing.proof
    assert arena.cluster.residue() == []


def test_a_rate_that_is_taken_back_while_the_broker_is_down_does_not_come_back(
    arena: BareArena, node: ContainerBroker
) -> None:
    node = _throttled(node)
    with FSYNC.hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        node.kill()
    node.restart()
    assert FSYNC.healed(arena, [node]).healed
    assert arena.cluster.residue() == []


def test_appends_cannot_be_throttled(node: ContainerBroker) -> None:
    with pytest.raises(FaultError, match=f"the disk of {node.name} cannot be slow_append by a rate"):
        _throttled(node).throttle_disk(DiskHarm.SLOW_APPEND, 256)
