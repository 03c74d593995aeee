"""Decisions of container clusters that need no engine: addresses, and which containers are abandoned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cluster_options import Choice
from harness.clusters.base.options import Options
from harness.clusters.containers import labels
from harness.clusters.containers.broker import ContainerBroker
from harness.clusters.containers.mesh import ContainerMesh
from harness.clusters.links.mesh import Port, members
from harness.contracts import Lane, Link
from harness.errors import FaultError, UsageError, WaitTimeout

MESH = ContainerMesh(77, members(3, 3, combined=False), "10.200.3")


def test_every_address_outside_is_in_the_block_and_used_once() -> None:
    published = [MESH.published_by_toxiproxy(), *(MESH.published(member) for member in MESH.members)]
    outside = [place for ports in published for place in ports.values()]
    assert len(set(outside)) == len(outside)
    assert all(host.startswith("127.77.") for host, _port in outside)
    assert len(MESH.published_by_toxiproxy()) == 1 + 2 * 3, "its API, and two lanes to each broker"


def test_clients_reach_lanes_through_proxies_and_control_directly() -> None:
    first = MESH.members[0]
    assert MESH.published(first)[Port.CONTROL] == (MESH.lane_address(Lane.CONTROL, first), Port.CONTROL)
    lanes = {route.link: route for route in MESH.routes()}
    produce = lanes[Link("produce", "broker-1")]
    assert produce.upstream == "10.200.3.11:21094"
    inside = MESH.proxy_ports()[produce.proxy]
    assert MESH.published_by_toxiproxy()[inside] == ("127.77.2.1", 21094)


def test_nodes_find_each_other_by_name_on_their_own_network() -> None:
    lines = MESH.hosts(MESH.members[0], "broker-1").splitlines()
    assert "10.200.3.12 broker-2" in lines
    assert "10.200.3.111 controller-1" in lines


# TRUST D1: an engine may serve several machines and users
@pytest.mark.parametrize(
    ("change", "abandoned"),
    [
        ({}, False),
        ({"start_ticks": 1}, True),
        ({"start_ticks": 1, "pid_namespace": 1}, False),
        ({"start_ticks": 1, "machine_id": "another"}, False),
        ({"start_ticks": 1, "boot_id": "another", "machine_id": "another"}, False),
        ({"start_ticks": 1, "uid": 4711}, False),
    ],
    ids=[
        "alive",
        "another with that pid",
        "another container",
        "another machine",
        "another host",
        "another user",
    ],
)
def test_only_containers_of_ended_harnesses_are_swept(
    tmp_path: Path, change: dict[str, object], abandoned: bool
) -> None:
    made = labels.labels(tmp_path)
    made[labels.OWNER] = json.dumps(json.loads(made[labels.OWNER]) | change)
    assert labels._is_abandoned(made) is abandoned


def test_containers_without_our_label_are_left_alone(tmp_path: Path) -> None:
    assert not labels._is_abandoned({})
    assert not labels._is_abandoned({labels.OWNER: "somebody"})
    assert not labels._is_abandoned({labels.OWNER: "99999999 1 earlier-boot pid:[4026531836]"}), (
        "a label of an older version"
    )
    assert not labels._is_abandoned(labels.labels(tmp_path))


def test_options_that_a_kind_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--image is for --cluster docker, not local"):
        Choice(image="some/kafka:1").build(tmp_path)
    with pytest.raises(UsageError, match="clocks of containers cannot be set"):
        Choice(cluster="docker", options=Options(clocks=True)).build(tmp_path)


class SilentBroker(ContainerBroker):
    """A broker without a container that serves nothing within the limits, as one that is short of memory on a busy machine."""

    def __init__(self) -> None:
        pass

    def append_kb(self, size_kb: int) -> tuple[int, float]:
        raise WaitTimeout(f"timed out after 20 s: no place for {size_kb} KB")


def test_a_broker_too_short_of_memory_to_answer_is_an_error_of_its_fault() -> None:
    with pytest.raises(FaultError, match="timed out after 20 s"):
        SilentBroker().ask_for_memory(0.1)
