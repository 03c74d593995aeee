"""Real brokers with ZooKeeper in containers: the same checks as suites/test_zookeeper.py has for local processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import provision
from harness.campaign import Campaign, Execute
from harness.clusters.base.options import Options
from harness.clusters.containers.zookeeper import DockerZooKeeperCluster
from harness.clusters.links import packet_filter
from harness.contracts import Cluster, Direction, Fault, Mode
from harness.errors import UsageError
from harness.injector import why_not_applicable
from harness.provision.docker import engine as engines
from harness.provision.docker.images import kafka_image
from harness.provision.kafka import version_of
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import Target
from suites.support import zookeeper_cases as cases
from suites.support.arena import BareArena
from suites.support.sessions import started_campaign

NO_CUTS = packet_filter.trouble()
only_root_cuts = pytest.mark.skipif(NO_CUTS is not None, reason=str(NO_CUTS))


@pytest.fixture(scope="module", autouse=True)
def engine_is_possible() -> None:
    if why := engines.trouble():
        pytest.skip(why)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with DockerZooKeeperCluster(
        tmp_path_factory.mktemp("docker") / "cluster", options=Options(byteman=True)
    ) as started:
        described = started.describe()
        print(f"\nready after {described.steps_s}, {described.more['rss_mb']} MB, {described.more['engine']}")
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    command = "pytest suites/test_docker_zookeeper.py -k {name} --seed {seed}"
    with started_campaign(request.config, cluster, command) as campaign:
        yield campaign


@pytest.fixture(scope="module")
def arena(cluster: DockerZooKeeperCluster) -> BareArena:
    return cases.arena_on(cluster)


@pytest.mark.conformance
def test_passes_the_check_of_its_contract(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with DockerZooKeeperCluster(tmp_path / "cluster") as cluster:
        for name, value in cases.check_contract(cluster, tmp_path / "logs").items():
            record_property(name, value)


@pytest.mark.docker
def test_an_image_without_zookeeper_is_refused(tmp_path: Path) -> None:
    """An image of the newest Kafka. Its content decides, since its name may be anything."""
    libs = provision.kafka_libs()
    image = kafka_image(engines.engine().client(), provision.java(), libs, version_of(libs))
    with pytest.raises(
        UsageError, match=rf"^--image {image} has no ZooKeeper; use an image of Kafka 3\.9\.2 or"
    ):
        DockerZooKeeperCluster(tmp_path / "cluster", image=image).start()


@pytest.mark.parametrize(("mode", "name"), list(cases.pairs(pytest.mark.docker)))
def test_what_was_promised_holds(execute: Execute, cluster: Cluster, mode: Mode, name: str) -> None:
    cases.check_promise(execute, cluster, mode, name)


@pytest.mark.conformance
def test_without_a_quorum_no_leader_is_elected(arena: BareArena) -> None:
    cases.check_no_elections_without_quorum(arena)


@pytest.mark.conformance
@pytest.mark.parametrize(("fault", "target"), cases.FAULTS, ids=str)
def test_faults_on_the_ensemble_bite_and_heal(arena: BareArena, fault: Fault, target: Target) -> None:
    once_on_target = Scenario(name=str(fault), mode=Mode.AT_LEAST_ONCE, schedule=once(fault, on=target))
    if why := why_not_applicable(once_on_target, arena.cluster):
        pytest.skip(why)
    cases.check_bites_and_heals(arena, fault, target)


@pytest.mark.conformance
@only_root_cuts
def test_all_traffic_between_servers_can_be_cut(arena: BareArena) -> None:
    cases.check_nothing_passes_cuts(arena)


@pytest.mark.conformance
@only_root_cuts
@pytest.mark.parametrize("direction", [Direction.REQUESTS, Direction.ANSWERS])
def test_links_between_servers_are_cut_one_way(arena: BareArena, direction: Direction) -> None:
    cases.check_one_way_cuts(arena, direction)
