"""ZooKeeper as data: addresses and links, settings, targets, requests and answers; and the gate."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from faults._ensemble import leader, voters
from faults._shapes import Wiring
from faults.sever import Sever
from harness.cluster_options import Choice
from harness.clusters.base.broker_properties import server_properties, zookeeper_properties
from harness.clusters.containers.mesh import ContainerMesh
from harness.clusters.links.mesh import Mesh, Port, members, members_with_zookeeper
from harness.contracts import Direction, EnsembleView, Link
from harness.errors import UsageError
from harness.kafka.protocol import raw_client, zookeeper
from harness.targets import Target, other_zookeepers, zookeeper_leader, zookeeper_majority
from harness.waiting import wait_until
from tests.fake_arena import FakeArena, FakeCluster, FakeNode, make_arena

MESH = Mesh(99, members_with_zookeeper(3, 3))
BROKER, SERVER = MESH.members[0], MESH.members[3]


# --- the mesh and the settings --------------------------------------------------------------------


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


# --- targets and faults ---------------------------------------------------------------------------


@dataclass
class EnsembleCluster(FakeCluster):
    modes: dict[str, str] = field(default_factory=dict)

    def view(self) -> EnsembleCluster:
        return self

    def nodes(self) -> list[Any]:
        return [*self.brokers, *map(FakeNode, self.modes)]

    def zookeepers(self) -> Mapping[str, str]:
        return self.modes


def _arena(*modes: str) -> FakeArena:
    plain = make_arena().cluster
    names = {f"zookeeper-{n}": mode for n, mode in enumerate(modes, 1)}
    return FakeArena(EnsembleCluster(plain.brokers, plain.replicas, modes=names))


def test_targets_pick_by_the_mode_that_servers_report() -> None:
    arena = _arena("follower", "leader", "follower")
    picked = {
        str(t): [n.name for n in t.pick(arena)]
        for t in (zookeeper_leader(), other_zookeepers(), zookeeper_majority())
    }
    assert picked == {
        "zookeeper_leader": ["zookeeper-2"],
        "zookeepers": ["zookeeper-1", "zookeeper-3"],
        "zookeeper_majority": ["zookeeper-2", "zookeeper-1"],
    }
    assert zookeeper_leader().pick(_arena("", "", "")) == []


def test_targets_can_be_made_again_and_raise_without_zookeeper() -> None:
    for target in (zookeeper_leader(), other_zookeepers(), zookeeper_majority()):
        assert Target.of(json.loads(json.dumps(target.describe()))) == target
        with pytest.raises(UsageError, match="no ZooKeeper"):
            target.pick(make_arena())


def test_voters_are_zookeeper_servers_or_else_controllers() -> None:
    arena = _arena("follower", "leader", "follower")
    assert isinstance(arena.cluster.view(), EnsembleView)
    assert list(voters(arena.cluster)) == ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
    assert leader(arena.cluster) == "zookeeper-2"
    plain = make_arena().cluster
    assert list(voters(plain)) == ["broker-1", "broker-2", "broker-3"]
    assert leader(plain) is None


WIRING = Wiring.of([m.name for m in MESH.members], [route.link for route in MESH.routes()])


def test_links_with_zookeeper_count_as_links_with_controllers() -> None:
    cut = [c.link for c in Sever("controllers").cuts(WIRING, ["broker-1"])]
    assert cut == [Link("broker-1", f"zookeeper-{n}", zookeeper=True) for n in (1, 2, 3)]
    copied = {c.link.source for c in Sever("replication").cuts(WIRING, ["zookeeper-1"])}
    assert copied == {"zookeeper-2", "zookeeper-3"}
    assert all(not link.zookeeper for link in WIRING.chosen(["broker-1"], "replication"))


def test_nodes_that_are_cut_off_lose_leadership_while_the_others_have_a_quorum() -> None:
    assert Sever().losers(WIRING, ["zookeeper-1"]) == {"zookeeper-1"}
    assert Sever().losers(WIRING, ["broker-1"]) == {"broker-1"}
    assert Sever().losers(WIRING, ["zookeeper-1", "zookeeper-2"]) == set()
    assert Sever(direction=Direction.REQUESTS).losers(WIRING, ["broker-1"]) == {"broker-1"}
    assert Sever(direction=Direction.ANSWERS).losers(WIRING, ["broker-1"]) == set(), "sessions are renewed"


# --- on the wire ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mode", "epoch"),
    [
        ("Zookeeper version: 3.8.4\nZxid: 0x300000007\nMode: follower\nNode count: 5\n", "follower", 3),
        ("Zxid: 0x100000000\nMode: leader\n", "leader", 1),
        ("This ZooKeeper instance is not currently serving requests\n", "", -1),
    ],
)
def test_mode_and_epoch_are_parsed(text: str, mode: str, epoch: int) -> None:
    assert zookeeper.parse_standing(text) == zookeeper.ServerStanding(mode, epoch)


def test_strangers_never_share_an_id() -> None:
    assert len({zookeeper.vote_hello() for _ in range(50)}) == 50


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening


def _answer(server: socket.socket, answer: bytes) -> None:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


def test_a_four_letter_word_is_answered(server: socket.socket) -> None:
    _answer(server, b"imok")
    assert zookeeper.four_letters(server.getsockname(), "ruok", 5.0) == "imok"


def test_silence_a_closed_connection_and_a_refused_one_raise_different_errors(server: socket.socket) -> None:
    with pytest.raises(raw_client.UnansweredError, match=r"did not answer within 0\.2 s"):
        zookeeper.are_you_ok(server.getsockname(), 0.2)
    server.accept()[0].close()
    _answer(server, b"")
    with pytest.raises(zookeeper.MuteError):
        zookeeper.are_you_ok(server.getsockname(), 5.0)
    place = server.getsockname()
    server.close()
    with pytest.raises(raw_client.ClosedError) as raised:
        zookeeper.are_you_ok(place, 5.0)
    assert not isinstance(raised.value, zookeeper.MuteError)


# --- the gate -------------------------------------------------------------------------------------


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


def test_a_follower_that_connects_before_the_leader_listens_waits_and_gets_through() -> None:
    front, back = _free_port(), _free_port()
    command = [
        sys.executable,
        "-m",
        "harness.clusters.links.follower_gate",
        f"127.0.0.1:{front}",
        f"127.0.0.1:{back}",
    ]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3]) as gate:
        try:
            wait_until(lambda: _connects(front), 20.0, "the gate does not listen")
            with closing(socket.create_connection(("127.0.0.1", front), timeout=10.0)) as early:
                early.sendall(b"may I follow?")
                with closing(socket.create_server(("127.0.0.1", back))) as leading:
                    leading.settimeout(10.0)
                    taken = _said(leading, b"may I follow?")
                    with taken:
                        taken.sendall(b"yes")
                        assert early.recv(100) == b"yes"
                    assert early.recv(100) == b"", "when the leader closes, so does the gate"
        finally:
            gate.kill()


def _said(leading: socket.socket, words: bytes) -> socket.socket:
    """Return the connection on which these words arrive; the connection that checked the gate sends nothing."""
    while True:
        connection, _ = leading.accept()
        connection.settimeout(10.0)
        if connection.recv(100) == words:
            return connection
        connection.close()


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True
