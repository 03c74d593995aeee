"""Brokers with ZooKeeper, for real: the cluster itself, and every mode while leaders, controller and ensemble go down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from faults.kill import Kill
from faults.pause import Pause
from faults.restart import Restart
from faults.sever import Sever
from harness.campaign import Campaign, Execute
from harness.clusters._zookeeper import ZooKeeperNode
from harness.clusters.zookeeper import ZooKeeperCluster
from harness.contracts import Cluster, Fault, Mode, Severable, Verdict
from harness.errors import UsageError
from harness.scenario import Scenario, TopicSettings
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
from suites.checks.arena import TOPIC, BareArena
from suites.sessions import started_campaign

MODES = (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE)


def _killed(target: Target, hold_s: float = 1.0) -> Schedule:
    return once(Kill(), on=target, after_s=0.5, hold_s=hold_s)


SCHEDULES: Mapping[str, Schedule] = {
    "kill-leader": _killed(leader_of(0)),
    "kill-controller": _killed(active_controller()),
    "kill-zookeeper_leader": _killed(zookeeper_leader()),
    "kill-zookeeper_majority": _killed(zookeeper_majority(), 2.0),
}


def _pairs() -> Iterator[object]:
    """Every mode crossed with every kill; one of them belongs to CI."""
    for name in SCHEDULES:
        for mode in MODES:
            quick = (mode, name) == (Mode.EXACTLY_ONCE, "kill-zookeeper_leader")
            mark = pytest.mark.smoke if quick else pytest.mark.conformance
            yield pytest.param(mode, name, marks=mark, id=f"{mode}-{name}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = ZooKeeperCluster(tmp_path_factory.mktemp("zookeeper"))
    with started:
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    command = "pytest suites/test_zookeeper.py -k {name} --seed {seed}"
    with started_campaign(request.config, cluster, command) as campaign:
        yield campaign


@pytest.mark.conformance
def test_passes_the_check_of_its_contract(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cluster = ZooKeeperCluster(tmp_path / "cluster")
    cluster.start()
    try:
        told = cluster.describe()
        record_property("steps_s", told["steps_s"])
        record_property("rss_mb", told["rss_mb"])
        print(f"\nready after {told['steps_s']}, {told['rss_mb']} MB")
        assert told["steps_s"]["ensemble_serves"] < told["steps_s"]["ready"]
        assert [node.name for node in cluster.nodes()] == [
            *(f"broker-{n}" for n in (1, 2, 3)),
            *(f"zookeeper-{n}" for n in (1, 2, 3)),
        ]
        check_cluster(cluster, tmp_path / "logs")
    finally:
        cluster.stop()


def test_versions_without_zookeeper_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^Kafka 4\.3\.1 knows no ZooKeeper: give --kafka 3\.9\.2 or older"):
        ZooKeeperCluster(tmp_path, kafka_version="4.3.1")


@pytest.mark.parametrize(("mode", "name"), list(_pairs()))
def test_what_was_promised_holds(execute: Execute, cluster: Cluster, mode: Mode, name: str) -> None:
    result = execute(Scenario(name=f"{mode}-{name}", mode=mode, schedule=SCHEDULES[name]))
    assert result.verdict is Verdict.HELD, result.explain()
    (window,) = result.reconciled["coverage"]["windows"]
    print(f"\n{window['proof']}; unavailable for {result.reconciled['unavailable_s_max']} s at most")
    assert list(cluster.residue()) == []


@pytest.fixture(scope="module")
def arena(cluster: ZooKeeperCluster) -> BareArena:
    cluster.create_topic(TOPIC, TopicSettings())
    return BareArena(cluster)


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("fault", "target"),
    [
        (Kill(), zookeeper_leader()),
        (Kill(), other_zookeepers()),
        (Pause(), zookeeper_leader()),
        (Restart(), zookeeper_leader()),
        (Sever(), zookeeper_leader()),
        (Sever("controllers"), leader_of(0)),
        (Sever("halves"), zookeeper_leader()),
    ],
    ids=lambda each: str(each),
)
def test_faults_on_the_ensemble_bite_and_heal(arena: BareArena, fault: Fault, target: Target) -> None:
    nodes = target.pick(arena)
    assert nodes
    checked = check_fault(fault, arena, nodes)
    print(f"\n{checked.bite.proof} {dict(checked.bite.measured)}\n{checked.healing.proof}")
    assert list(arena.cluster.residue()) == []


@pytest.mark.conformance
def test_what_passes_between_servers_passes_a_proxy(arena: BareArena) -> None:
    """With all links of a server cut it serves nobody: none of its traffic goes past the proxies."""
    victim = zookeeper_leader().pick(arena)[0]
    assert isinstance(victim, Severable)
    assert isinstance(victim, ZooKeeperNode)
    with Sever().hold(arena, [victim]) as bite:
        assert bite.bit, bite.proof
        assert victim.standing().mode == ""
    assert Sever().healed(arena, [victim]).healed
