"""Between combined nodes the traffic with controllers is cut separately from the other traffic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults._measure import probe_all
from faults.sever import Sever
from harness.clusters.local import LocalCluster
from harness.contracts import Direction, TopicSettings
from harness.targets import leader_of
from harness.testing.check_fault import check_fault
from suites.harness_checks.faults.test_links import every_link
from suites.support.arena import TOPIC, BareArena

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareArena]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), combined=True) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        yield BareArena(cluster)


@pytest.mark.parametrize("shape", ["controllers", "replication", "halves", "ring", "bridge"])
def test_bites_and_heals(arena: BareArena, shape: str) -> None:
    checked = check_fault(Sever(shape), arena, leader_of().pick(arena))
    print(f"\n{shape}: {checked.bite.proof} | {checked.healing.proof}")


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("shape", ["controllers", "replication"])
def test_the_other_traffic_of_the_same_nodes_passes(
    arena: BareArena, shape: str, direction: Direction
) -> None:
    fault, nodes = Sever(shape, direction), leader_of().pick(arena)
    at, _wiring = every_link(arena)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        passing = probe_all(at)
    dead = {link for link, ways in passing.items() if not ways[Direction.BOTH]}
    assert {link.controller for link in dead} == {shape == "controllers"}
    assert len(dead) == (4 if shape == "controllers" else 2)
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof
