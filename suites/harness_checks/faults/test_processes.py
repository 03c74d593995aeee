"""Faults on processes and clocks of a real cluster: each bites and heals, by every way that this machine has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from faults.kill import Kill
from faults.pause import Pause
from faults.restart import Restart
from faults.rolling_restart import RollingRestart
from faults.skew_clock import SkewClock
from faults.starve import Starve
from harness.clusters.base.options import Options
from harness.clusters.local import LocalCluster
from harness.clusters.powers import cpu, memory
from harness.clusters.powers.clock import Clocked
from harness.clusters.powers.local_nodes import LocalNode
from harness.clusters.powers.memory import SqueezedProcess
from harness.contracts import Fault, Starvable, TopicSettings
from harness.errors import ClusterError
from harness.machine.cgroup_memory import MemoryGroup
from harness.targets import (
    Target,
    active_controller,
    every_broker,
    everyone,
    follower_of,
    leader_of,
    some_brokers,
)
from harness.testing.check_fault import check_fault
from harness.testing.leftovers import control_groups
from harness.waiting import wait_until
from suites.support.arena import TOPIC, BareArena

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareArena]:
    with LocalCluster(
        tmp_path_factory.mktemp("cluster"), options=Options(clocks=True, memory=True)
    ) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        yield BareArena(cluster)


CASES: list[tuple[Fault, Target]] = [
    (Kill(), some_brokers(2, seed=1)),
    (Kill(), everyone()),
    (Restart(), leader_of()),
    (Restart(), active_controller()),
    (Restart(), every_broker()),
    (RollingRestart(), every_broker()),
    (Pause(), leader_of()),
    (Pause(), follower_of()),
    (Pause(), active_controller()),
    (Starve(), leader_of()),
    (Starve(0.2), active_controller()),
    (SkewClock(), leader_of()),
    (SkewClock(-7200), follower_of()),
    (SkewClock(0, 1.2), leader_of()),
    (SkewClock(0, 0.8), leader_of()),
    (SkewClock(-30), active_controller()),
]


@pytest.mark.parametrize(("fault", "target"), CASES, ids=lambda each: str(each))
def test_bites_and_heals(
    arena: BareArena, fault: Fault, target: Target, record_property: Callable[[str, object], None]
) -> None:
    checked = check_fault(fault, arena, target.pick(arena))
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault} {target} ({checked.bite.way}): {checked.bite.proof} | {checked.healing.proof}")


def test_without_controllers_no_leader_is_elected(arena: BareArena) -> None:
    voters = arena.cluster.view().controllers()
    fault, nodes = Kill(), [node for node in arena.nodes() if node.name in voters]
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert "no majority of controllers is left" in bite.proof
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof


def test_a_quorum_that_is_stopped_as_a_whole_does_not_hang(arena: BareArena) -> None:
    """The last servers wait for a quorum that is gone: they are killed, and the proof reports it."""
    fault, nodes = Restart(limit_s=5.0), everyone().pick(arena)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["killed"] >= 1
        assert "was killed, as it did not end by itself" in bite.proof
        assert bite.measured["slowest_stop_s"] < 30
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof


def test_a_clean_stop_moves_leaders_sooner_than_a_session_lasts(arena: BareArena) -> None:
    """The controller waits 3 s for a silent broker."""
    with Restart().hold(arena, leader_of().pick(arena)) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["killed"] == 0
        assert bite.measured["leader_moved_s"] < 3
    assert Restart().healed(arena, every_broker().pick(arena)).healed


def test_a_node_starved_by_signals_does_not_count_as_paused(
    arena: BareArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "place_for", lambda pid: None)
    nodes = follower_of().pick(arena)
    checked = check_fault(Starve(0.2), arena, nodes)
    assert checked.bite.way == "signals"
    print(f"\n{checked.bite.proof} | {checked.healing.proof}")
    node = nodes[0]
    assert isinstance(node, LocalNode)
    with Starve(0.2).hold(arena, nodes):
        assert node.residue() == [f"{node.name} is starved"], "stopped now and then, but not paused"
        node.pause()
        wait_until(node.paused, 5.0, "a real pause still counts")
        node.resume()
    assert Starve(0.2).healed(arena, nodes).healed
    assert node.residue() == []


def test_a_starved_node_that_is_killed_is_starved_again_and_leaves_no_group(arena: BareArena) -> None:
    fault, nodes = Starve(0.2), leader_of().pick(arena)
    node = nodes[0]
    assert isinstance(node, LocalNode)
    assert isinstance(node, Starvable)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        node.kill()
        node.restart()
        assert control_groups(os.getpid()), "it is starved by a control group"
        assert node.cpu_under_load(3.0) <= 0.2 * 1.2 + 0.02
    assert fault.healed(arena, nodes).healed
    assert control_groups(os.getpid()) == set()


NO_MEMORY = memory.trouble()
needs_memory_groups = pytest.mark.skipif(NO_MEMORY is not None, reason=str(NO_MEMORY))


@needs_memory_groups
@pytest.mark.parametrize("target", [leader_of(), active_controller()], ids=str)
def test_taking_memory_bites_and_heals(arena: BareArena, target: Target) -> None:
    checked = check_fault(Starve(memory_mb=8), arena, target.pick(arena))
    missed = checked.bite.measured
    assert missed.get("refused_during", 0) > 0 or missed["ended"] == 1
    assert checked.healing.measured["refused_after"] == 0
    print(f"\n{target}: {checked.bite.proof} | {checked.healing.proof}")


@needs_memory_groups
def test_a_node_short_of_memory_that_is_killed_starts_and_is_short_of_it_again(arena: BareArena) -> None:
    fault, nodes = Starve(memory_mb=8), leader_of().pick(arena)
    node = nodes[0]
    assert isinstance(node, SqueezedProcess)
    home = node.memory_home()
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert node.residue() == [f"{node.name} is short of memory"]
        node.kill()
        node.restart()
        assert home is not None
        assert MemoryGroup(home).look().limit_mb is not None
    assert fault.healed(arena, nodes).healed
    assert node.residue() == []
    assert node.memory_home() == home, "its group is the one that it had from the start"


def test_a_wrong_clock_outlives_a_restart_and_only_that_clock_is_wrong(arena: BareArena) -> None:
    fault, nodes = SkewClock(120), leader_of().pick(arena)
    brokers = [node for node in arena.nodes() if isinstance(node, Clocked) and node.member.broker]
    assert all(abs(broker.clock_offset_s()) < 0.5 for broker in brokers), "nothing was done yet"
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert arena.cluster.residue() == [f"the clock of {nodes[0].name} is set wrong"]
        for broker in brokers:
            wanted = 120 if broker.name == nodes[0].name else 0
            assert broker.clock_offset_s() == pytest.approx(wanted, abs=0.5)
        (wrong,) = [broker for broker in brokers if broker.name == nodes[0].name]
        wrong.kill()
        wrong.restart()
        wait_until(lambda: _reports_clock(wrong), 30.0, "its probe partition has no leader")
        assert wrong.clock_offset_s() == pytest.approx(120, abs=0.5)
    assert fault.healed(arena, nodes).healed


def _reports_clock(broker: Clocked) -> bool:
    try:
        broker.clock_offset_s()
    except ClusterError:
        return False
    return True


def test_only_the_active_controller_reports_its_time(arena: BareArena) -> None:
    view = arena.cluster.view()
    idle = [name for name in view.controllers() if name != view.active_controller()]
    nodes = [node for node in arena.nodes() if node.name == idle[0]]
    with SkewClock().hold(arena, nodes) as bite:
        assert not bite.bit
        assert "does not lead the quorum" in bite.proof
    assert arena.cluster.residue() == []
