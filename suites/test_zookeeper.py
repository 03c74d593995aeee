"""Real brokers with ZooKeeper as local processes: every mode while leaders, controller and ensemble fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.campaign import Campaign, Execute
from harness.clusters.base.options import Options
from harness.clusters.zookeeper import ZooKeeperCluster
from harness.contracts import Cluster, Direction, Fault, Mode
from harness.errors import UsageError
from harness.targets import Target
from suites.support import zookeeper_cases as cases
from suites.support.arena import BareArena
from suites.support.sessions import started_campaign


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ZooKeeperCluster(tmp_path_factory.mktemp("zookeeper"), options=Options(byteman=True)) as started:
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    command = "pytest suites/test_zookeeper.py -k {name} --seed {seed}"
    with started_campaign(request.config, cluster, command) as campaign:
        yield campaign


@pytest.fixture(scope="module")
def arena(cluster: ZooKeeperCluster) -> BareArena:
    return cases.arena_on(cluster)


@pytest.mark.conformance
def test_passes_the_check_of_its_contract(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with ZooKeeperCluster(tmp_path / "cluster") as cluster:
        for name, value in cases.check_contract(cluster, tmp_path / "logs").items():
            record_property(name, value)


def test_versions_without_zookeeper_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^Kafka 4\.3\.1 does not support ZooKeeper; use --kafka 3\.9\.2 or older"
    ):
        ZooKeeperCluster(tmp_path, kafka_version="4.3.1")


@pytest.mark.parametrize(("mode", "name"), list(cases.pairs(pytest.mark.smoke)))
def test_what_was_promised_holds(execute: Execute, cluster: Cluster, mode: Mode, name: str) -> None:
    cases.check_promise(execute, cluster, mode, name)


@pytest.mark.conformance
def test_without_a_quorum_no_leader_is_elected(arena: BareArena) -> None:
    cases.check_no_elections_without_quorum(arena)


@pytest.mark.conformance
@pytest.mark.parametrize(("fault", "target"), cases.FAULTS, ids=str)
def test_faults_on_the_ensemble_bite_and_heal(arena: BareArena, fault: Fault, target: Target) -> None:
    cases.check_bites_and_heals(arena, fault, target)


@pytest.mark.conformance
def test_all_traffic_between_servers_passes_a_proxy(arena: BareArena) -> None:
    cases.check_nothing_passes_cuts(arena)


@pytest.mark.conformance
@pytest.mark.parametrize("direction", [Direction.REQUESTS, Direction.ANSWERS])
def test_links_between_servers_are_cut_one_way(arena: BareArena, direction: Direction) -> None:
    cases.check_one_way_cuts(arena, direction)
