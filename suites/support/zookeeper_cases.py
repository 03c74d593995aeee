"""Schedules, faults and checks for clusters with ZooKeeper, whatever their servers run as."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from faults.kill import Kill
from faults.pause import Pause
from faults.restart import Restart
from faults.sever import Sever
from harness.campaign import Execute
from harness.clusters.ensemble.cluster import WithZooKeeper
from harness.clusters.ensemble.server import ZooKeeperServer
from harness.contracts import Cluster, Direction, Fault, Killable, Mode, Severable, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import Schedule, once
from harness.targets import (
    Target,
    active_controller,
    leader_of,
    other_zookeepers,
    zookeeper_leader,
    zookeeper_majority,
)
from harness.testing.check_cluster import check_cluster
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from suites.scenarios.matrix import MODES
from suites.support.arena import TOPIC, BareArena

# A broker's session is 3 s: with a quorum, another broker would have led a dead leader's partitions long before.
NO_ELECTION_S = 10.0
ELECTION_LIMIT_S = 30.0


def _killed(target: Target, hold_s: float = 1.0) -> Schedule:
    return once(Kill(), on=target, after_s=0.5, hold_s=hold_s)


SCHEDULES: Mapping[str, Schedule] = {
    "kill-leader": _killed(leader_of(0)),
    "kill-controller": _killed(active_controller()),
    "kill-zookeeper_leader": _killed(zookeeper_leader()),
    "kill-zookeeper_majority": _killed(zookeeper_majority(), 2.0),
}
_QUICK = (Mode.EXACTLY_ONCE, "kill-zookeeper_leader")


def pairs(in_ci: pytest.MarkDecorator) -> Iterator[object]:
    """Yield every mode crossed with every kill; one of them belongs to CI."""
    for name in SCHEDULES:
        for mode in MODES:
            mark = in_ci if (mode, name) == _QUICK else pytest.mark.conformance
            yield pytest.param(mode, name, marks=mark, id=f"{mode}-{name}")


FAULTS: tuple[tuple[Fault, Target], ...] = (
    (Kill(), zookeeper_leader()),
    (Kill(), other_zookeepers()),
    (Pause(), zookeeper_leader()),
    (Restart(), zookeeper_leader()),
    (Sever(), zookeeper_leader()),
    (Sever("controllers"), leader_of(0)),
    (Sever("halves"), zookeeper_leader()),
)


def check_contract(cluster: WithZooKeeper[Any], logs: Path) -> Mapping[str, object]:
    """Check a started cluster, which is stopped; return the measurements of its start."""
    described = cluster.describe()
    print(f"\nready after {described.steps_s}, {described.more['rss_mb']} MB")
    assert described.steps_s["ensemble_serves"] < described.steps_s["ready"]
    assert [node.name for node in cluster.nodes()] == [
        *(f"broker-{n + 1}" for n in range(described.more["brokers"])),
        *(f"zookeeper-{n + 1}" for n in range(described.more["zookeepers"])),
    ]
    check_cluster(cluster, logs)
    return {"steps_s": described.steps_s, "rss_mb": described.more["rss_mb"]}


def check_promise(execute: Execute, cluster: Cluster, mode: Mode, name: str) -> None:
    result = execute(Scenario(name=f"{mode}-{name}", mode=mode, schedule=SCHEDULES[name]))
    assert result.verdict is Verdict.HELD, result.explain()
    (window,) = result.reconciled["coverage"]["windows"]
    print(f"\n{window['proof']}; unavailable for {result.reconciled['unavailable_s_max']} s at most")
    assert list(cluster.residue()) == []


def arena_on(cluster: WithZooKeeper[Any]) -> BareArena:
    cluster.create_topic(TOPIC, TopicSettings())
    return BareArena(cluster)


def check_bites_and_heals(arena: BareArena, fault: Fault, target: Target) -> None:
    nodes = target.pick(arena)
    assert nodes
    checked = check_fault(fault, arena, nodes)
    print(f"\n{checked.bite.proof} {dict(checked.bite.measured)}\n{checked.healing.proof}")
    assert list(arena.cluster.residue()) == []


def check_nothing_passes_cuts(arena: BareArena) -> None:
    """Check that a server with all links cut does not serve: none of its traffic takes another way."""
    victim = zookeeper_leader().pick(arena)[0]
    assert isinstance(victim, Severable)
    assert isinstance(victim, ZooKeeperServer)
    with Sever().hold(arena, [victim]) as bite:
        assert bite.bit, bite.proof
        assert victim.standing().mode == ""
    assert Sever().healed(arena, [victim]).healed


def check_one_way_cuts(arena: BareArena, direction: Direction) -> None:
    """Check that cuts between servers affect only their direction, at the leader and at a follower."""
    leader, follower = zookeeper_leader().pick(arena)[0], other_zookeepers().pick(arena)[0]
    fault = Sever("replication", direction)
    for victim in (leader, follower):
        with fault.hold(arena, [victim]) as bite:
            print(f"\n{bite.proof}")
            assert bite.bit, bite.proof
        assert fault.healed(arena, [victim]).healed


def check_no_elections_without_quorum(arena: BareArena) -> None:
    """Check that with two of three servers down a dead leader stays the leader, and that another one is elected later."""
    leader = leader_of(0).pick(arena)[0]
    assert isinstance(leader, Killable)
    view = arena.cluster.view()

    def elected() -> str | None:
        (state,) = (state for state in view.partitions(arena.topic) if state.partition == 0)
        return state.leader if state.leader != leader.name else None

    with ExitStack() as undo:
        undo.callback(leader.restart)
        with Kill().hold(arena, zookeeper_majority().pick(arena)) as bite:
            assert bite.bit, bite.proof
            leader.kill()
            watched_until = time.monotonic() + NO_ELECTION_S
            while time.monotonic() < watched_until:
                assert elected() is None
                time.sleep(0.2)
        back = time.monotonic()
        new = wait_until(elected, ELECTION_LIMIT_S, f"no broker has replaced the leader {leader.name}")
        took_s = time.monotonic() - back
        print(
            f"\n{bite.proof}; no election for {NO_ELECTION_S:g} s, {new} elected {took_s:.1f} s after they were back"
        )
    assert Kill().healed(arena, [leader]).healed
    assert list(arena.cluster.residue()) == []
