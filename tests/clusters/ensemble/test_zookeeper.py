"""ZooKeeper as data: addresses, links, settings, and the options that choose it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cluster_options import Choice
from harness.clusters.base.broker_properties import server_properties, zookeeper_properties
from harness.clusters.containers.mesh import ContainerMesh
from harness.clusters.links.mesh import Mesh, Port, members, members_with_zookeeper
from harness.contracts import Link
from harness.errors import UsageError

MESH = Mesh(99, members_with_zookeeper(3, 3))
BROKER, SERVER = MESH.members[0], MESH.members[3]


def test_every_link_has_its_own_addresses() -> None:
    routes = MESH.routes()
    assert len({route.listen for route in routes}) == len({route.proxy for route in routes}) == len(routes)
    assert all(not route.listen.startswith("127.99.1.") for route in routes)
    # Brokers among themselves, brokers to servers, servers among themselves (two ports each), two client lanes.
    assert len(routes) == 6 + 9 + 2 * 6 + 6


def test_a_link_between_servers_is_one_link_with_two_proxies() -> None:
    link = Link("zookeeper-1", "zookeeper-2", zookeeper=True)
    ports = [route.port for route in MESH.routes() if route.link == link]
    assert ports == [Port.ZOOKEEPER_ELECTION, Port.ZOOKEEPER_PEER], "probes use the first"
    assert str(link) == "zookeeper-1->zookeeper-2:zookeeper"
    assert link in MESH.links("zookeeper-1")
    assert MESH.links("zookeeper-1")[0].source == "broker-1"


def test_a_server_listens_on_its_own_address_and_reaches_others_through_proxies() -> None:
    properties = zookeeper_properties(MESH, SERVER, Path("data"))
    assert properties["clientPortAddress"] == MESH.address(SERVER)
    assert {key for key in properties if key.startswith("server.")} == {"server.1", "server.2", "server.3"}
    lines = [line.split() for line in MESH.hosts(SERVER, "here").splitlines()]
    hosts = {name: place for place, name in lines}
    assert hosts["zookeeper-1"] == MESH.address(SERVER)
    assert hosts["zookeeper-2"] not in {MESH.address(member) for member in MESH.members}


def test_servers_allow_the_session_timeout_of_brokers() -> None:
    broker = server_properties(MESH, BROKER, Path("data"), {})
    tick_ms = int(zookeeper_properties(MESH, SERVER, Path("data"))["tickTime"])
    assert 2 * tick_ms <= int(broker["zookeeper.session.timeout.ms"]) <= 20 * tick_ms


def test_a_broker_has_settings_of_either_kraft_or_zookeeper() -> None:
    with_zookeeper = server_properties(MESH, BROKER, Path("data"), {"broker.id": "7"})
    assert "process.roles" not in with_zookeeper
    assert "controller.quorum.voters" not in with_zookeeper
    assert with_zookeeper["broker.id"] == "7", "given settings override the defaults"
    mesh = Mesh(99, members(3, 3, False))
    assert "zookeeper.connect" not in server_properties(mesh, mesh.members[0], Path("data"), {})


# --- the choice -----------------------------------------------------------------------------------


def _choice(**given: Any) -> Choice:
    return Choice.of(given.get)


def test_a_kind_has_its_own_default_version() -> None:
    assert _choice(cluster="zookeeper").kafka == "3.9.2"
    assert _choice(cluster="zookeeper", kafka="3.8.1").kafka == "3.8.1"
    assert _choice().kafka == _choice(cluster="local").kafka != "3.9.2"
    assert _choice(cluster="zookeeper").words() == ["--cluster", "zookeeper", "--kafka", "3.9.2"]


def test_containers_have_zookeeper_when_requested() -> None:
    asked = _choice(cluster="docker", zookeeper=True)
    assert asked.kafka == "3.9.2"
    assert _choice(cluster="docker", zookeeper=True, kafka="3.7.2").kafka == "3.7.2"
    assert _choice(cluster="docker").kafka != "3.9.2"
    assert asked.words() == ["--cluster", "docker", "--kafka", "3.9.2", "--zookeeper"]
    assert str(asked) == "Kafka 3.9.2 (docker, ZooKeeper)"


def test_both_kinds_have_the_same_layout(tmp_path: Path) -> None:
    local = _choice(cluster="zookeeper").build(tmp_path)
    docker = _choice(cluster="docker", zookeeper=True).build(tmp_path)
    for cluster in (local, docker):
        described = cluster.describe()
        assert [described.more[name] for name in ("brokers", "controllers", "zookeepers")] == [3, 0, 3]
        assert described.kafka_version == "3.9.2"
    assert "zookeepers" not in _choice(cluster="docker").build(tmp_path).describe().more


IN_CONTAINERS = {"cluster": "docker", "zookeeper": True}
AS_PROCESSES = {"cluster": "zookeeper"}
NO_ZOOKEEPER = r"^Kafka 4\.3\.1 does not support ZooKeeper; use --kafka 3\.9\.2 or older, or "


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({**AS_PROCESSES, "kafka": "4.3.1"}, rf"{NO_ZOOKEEPER}--cluster local$"),
        ({**IN_CONTAINERS, "kafka": "4.3.1"}, rf"{NO_ZOOKEEPER}leave out --zookeeper$"),
        ({**AS_PROCESSES, "combined": True}, r"^--combined: "),
        ({**IN_CONTAINERS, "combined": True}, r"^--combined: "),
        ({**AS_PROCESSES, "zookeeper": True}, r"^--zookeeper is for --cluster docker, not zookeeper$"),
        ({"zookeeper": True}, r"^--zookeeper is for --cluster docker, not local$"),
        ({"cluster": "docker", "kafka": "2.8.2"}, r"^Kafka 2\.8\.2 has no KRaft ready for production"),
        ({**IN_CONTAINERS, "kafka": "newest"}, r"^Kafka newest: a release is named by its numbers"),
    ],
)
def test_bad_options_are_refused_in_one_line(given: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        _choice(**given).build(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_server_in_a_container_has_an_address_outside_and_a_name_inside() -> None:
    mesh = ContainerMesh(77, MESH.members, "10.200.3")
    assert mesh.published(SERVER) == {Port.ZOOKEEPER: (mesh.address(SERVER), Port.ZOOKEEPER)}
    properties = zookeeper_properties(mesh, SERVER, Path("data"))
    assert properties["clientPortAddress"] == "10.200.3.211"
    lines = [line.split() for line in mesh.hosts(SERVER, SERVER.name).splitlines()]
    assert ["10.200.3.212", "zookeeper-2"] in lines
