"""Link faults on a real cluster: every shape and kind bites and heals, and affects nothing else."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from faults._measure import probe_all
from faults._shapes import Wiring
from faults.flaky_link import FlakyLink
from faults.sever import SHAPES, Sever
from faults.slow_link import SlowLink
from harness.clusters.links.mesh import Port
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalBroker
from harness.contracts import Direction, Ending, Fault, Lane, Link, Questions, Severable, TopicSettings
from harness.kafka.protocol import raw_client
from harness.targets import Target, active_controller, every_broker, leader_of
from harness.testing.check_fault import check_fault
from suites.support.arena import TOPIC, BareArena

pytestmark = pytest.mark.conformance
ONE_WAY = (Direction.REQUESTS, Direction.ANSWERS)
_API_VERSIONS = 18


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareArena]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        yield BareArena(cluster)


CASES: list[tuple[Fault, Target]] = [
    *((Sever(shape), leader_of()) for shape in SHAPES),
    *((Sever(shape), active_controller()) for shape in ("controllers", "halves", "ring", "bridge")),
    *((Sever("isolate", way), leader_of()) for way in ONE_WAY),
    (SlowLink(), leader_of()),
    (SlowLink(), active_controller()),
    (SlowLink(jitter_ms=40, lanes="replication"), every_broker()),
    (SlowLink(direction=Direction.ANSWERS, lanes="clients"), leader_of()),
    (SlowLink(0, rate_kb_s=20), leader_of()),
    (SlowLink(0, slice_bytes=40, lanes="clients"), leader_of()),
    (FlakyLink(), leader_of()),
    (FlakyLink(after_ms=300, direction=Direction.ANSWERS, lanes="clients"), leader_of()),
    (FlakyLink("half_open"), leader_of()),
    (FlakyLink("half_open"), active_controller()),
    (FlakyLink("close_after"), leader_of()),
    (FlakyLink("close_after", direction=Direction.REQUESTS, lanes="controllers"), leader_of()),
]


@pytest.mark.parametrize(("fault", "target"), CASES, ids=lambda each: str(each))
def test_bites_and_heals(
    arena: BareArena, fault: Fault, target: Target, record_property: Callable[[str, object], None]
) -> None:
    checked = check_fault(fault, arena, target.pick(arena))
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault} {target}: {checked.bite.proof} | {checked.healing.proof}")


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "answers"])
def test_cuts_affect_only_their_links_and_directions(
    arena: BareArena, shape: str, direction: Direction
) -> None:
    """Probe every link of the cluster during the fault, not only the links that the fault itself probes."""
    fault, nodes = Sever(shape, direction), leader_of().pick(arena)
    at, wiring = every_link(arena)
    cut = {each.link for each in fault.cuts(wiring, [node.name for node in nodes])}
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        passing = probe_all(at)
    assert 0 < len(cut) < len(at)
    for link, ways in passing.items():
        for way in ONE_WAY:
            dead = link in cut and direction in (way, Direction.BOTH)
            assert ways[way] is not dead, f"{link} {way}: {ways}"
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof


@pytest.mark.parametrize("shape", ["halves", "ring", "bridge"])
def test_a_partition_that_lasts_longer_than_sessions_heals(arena: BareArena, shape: str) -> None:
    """Whichever brokers were elected or removed meanwhile: afterwards all links pass and every copy is in sync."""
    fault, nodes = Sever(shape), active_controller().pick(arena)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        time.sleep(6.0)
        registered = arena.cluster.view().registered_brokers()
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof
    assert len(arena.cluster.view().registered_brokers()) == 3
    print(f"\n{shape} for 6 s: then registered were {', '.join(registered)} | {healing.proof}")


def test_while_requests_are_cut_an_answer_still_comes_through(arena: BareArena) -> None:
    """A request that was sent before the cut is answered after a while, during the cut."""
    (node,) = nodes = leader_of().pick(arena)
    assert isinstance(node, LocalBroker)
    fault, link = Sever("clients", Direction.REQUESTS), Link(Lane.PRODUCE.value, node.name)
    with node.long_question(link, TOPIC, 0, wait_s=10.0) as late_answer, fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["late_answers"] >= 1, "the fault has probed in the same way"
        assert not late_answer(0.0), "the cut is in place, the answer has not come yet"
        assert late_answer(12.0)
    assert fault.healed(arena, nodes).healed


def test_a_reset_of_answers_comes_after_the_broker_has_acted(arena: BareArena) -> None:
    nodes = leader_of().pick(arena)
    fault = FlakyLink(direction=Direction.ANSWERS, lanes="clients")
    before = end_of_log(arena, nodes[0].name)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        with pytest.raises(raw_client.ClosedError):
            raw_client.produce(lane_address(arena, nodes[0].name), TOPIC, 0, b"reset", 5.0)
    assert fault.healed(arena, nodes).healed
    assert end_of_log(arena, nodes[0].name) == before + 2, (
        "the record whose answer was lost, and the record of the probe"
    )


def test_a_half_open_connection_has_no_end_at_the_broker(arena: BareArena) -> None:
    """This distinguishes it from a cut, which leaves both ends open."""
    (node,) = nodes = leader_of().pick(arena)
    assert isinstance(node, LocalBroker)
    for fault, ends in ((Sever("clients"), 1), (FlakyLink("half_open", lanes="clients"), 0)):
        with socket.create_connection(lane_address(arena, node.name), 5.0) as connection:
            ask(connection)
            assert connection.recv(4, socket.MSG_WAITALL), "it was open before"
            assert ends_at(node.address, Port.PRODUCE) == 1
            with fault.hold(arena, nodes) as bite:
                assert bite.bit, bite.proof
                ask(connection)
                connection.settimeout(1.0)
                drained(connection)
                assert ends_at(node.address, Port.PRODUCE) == ends, str(fault)
            connection.settimeout(5.0)
            with pytest.raises((ConnectionError, EOFError)):
                drained(connection)  # healing closes the half-open connections: clients reconnect
        assert fault.healed(arena, nodes).healed


def test_an_older_connection_is_closed_by_a_reset_and_counted_from_zero_by_a_limit(
    arena: BareArena,
) -> None:
    """The behaviour of Toxiproxy for open connections, as the faults document it."""
    nodes = leader_of().pick(arena)
    for fault, answers in ((FlakyLink(lanes="clients"), 0), (FlakyLink("close_after", lanes="clients"), 21)):
        with socket.create_connection(lane_address(arena, nodes[0].name), 5.0) as connection:
            for _ in range(5):
                assert answered(connection)
            with fault.hold(arena, nodes) as bite:
                assert bite.bit, bite.proof
                for number in range(answers):
                    assert answered(connection), f"{fault}: answer {number}"
                assert not answered(connection), "closed, not reset"
        assert fault.healed(arena, nodes).healed


def test_three_faults_on_the_same_links_each_take_back_their_own(arena: BareArena) -> None:
    (node,) = nodes = leader_of().pick(arena)
    assert isinstance(node, LocalBroker)
    link = Link(Lane.PRODUCE.value, node.name)
    slow = SlowLink(latency_ms=200, lanes="clients", direction=Direction.ANSWERS)
    flaky, cut = FlakyLink("close_after", lanes="clients"), Sever("answers")
    with ExitStack() as outer:
        assert outer.enter_context(slow.hold(arena, nodes)).bit
        with flaky.hold(arena, nodes) as bite:
            assert bite.bit, bite.proof
            with cut.hold(arena, nodes) as bite:
                assert bite.bit, bite.proof
                assert {words(left) for left in arena.cluster.residue()} == {
                    "slow_link",
                    "flaky_link",
                    "sever",
                }
            assert node.passes(link)[Direction.BOTH]
        assert {words(left) for left in arena.cluster.residue()} == {"slow_link"}
        answer = node.talk(link, Questions())
        assert answer.ending is Ending.ANSWERED
        assert answer.took_s >= 0.2, "the first fault still holds"
    assert arena.cluster.residue() == []
    for fault in (slow, flaky, cut):
        healing = fault.healed(arena, nodes)
        assert healing.healed, healing.proof


# --- help -----------------------------------------------------------------------------------------


def every_link(arena: BareArena) -> tuple[dict[Link, Severable], Wiring]:
    nodes = [node for node in arena.cluster.nodes() if isinstance(node, Severable)]
    at = {link: node for node in nodes for link in node.links()}
    return at, Wiring.of([node.name for node in nodes], at)


def words(residue: str) -> str:
    """Return the fault that is in the name of a toxic."""
    named = ("slow_link", "flaky_link", "sever")
    return next(name for name in named if name in residue)


def lane_address(arena: BareArena, name: str) -> raw_client.Address:
    places: Sequence[str] = arena.cluster.bootstrap_servers(Lane.PRODUCE).split(",")
    host, port = places[int(name.removeprefix("broker-")) - 1].split(":")
    return host, int(port)


def end_of_log(arena: BareArena, name: str) -> int:
    """Return the end of the log, by appending one record."""
    node = next(node for node in arena.cluster.nodes() if node.name == name)
    assert isinstance(node, LocalBroker)
    return raw_client.produce(node.control, TOPIC, 0, b"end", 5.0) + 1


def ask(connection: socket.socket) -> None:
    connection.sendall(raw_client.request(_API_VERSIONS, 0, b""))


def answered(connection: socket.socket) -> bool:
    """Return False if the connection is closed in an orderly way instead; a reset raises."""
    ask(connection)
    size = connection.recv(4, socket.MSG_WAITALL)
    if len(size) < 4:
        return False
    length = int(struct.unpack(">i", size)[0])
    return len(connection.recv(length, socket.MSG_WAITALL)) == length


def drained(connection: socket.socket) -> None:
    """Read until nothing comes; raise EOFError if the connection is closed."""
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return
    raise EOFError


def ends_at(address: str, port: int) -> int:
    """Return the number of established connections at the server's end, as the kernel reports."""
    place = "".join(f"{int(part):02X}" for part in reversed(address.split("."))) + f":{port:04X}"
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()
    ]
    return sum(row[1].endswith(place) and row[3] == "01" for row in rows[1:])


def test_an_isolated_leader_still_answers_its_clients(arena: BareArena) -> None:
    """Hazard A17 depends on this: the leader is cut from its peers but reachable for producers."""
    fault, nodes = Sever(), leader_of().pick(arena)
    before = arena.cluster.view().partitions(TOPIC)[0]
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        after = arena.cluster.view().partitions(TOPIC)[0]
        assert after.leader != before.leader, "the view follows the side that has the quorum"
        assert arena.cluster.view().produce_round_trip_ms(nodes[0].name) > 0
        # No metadata gets past the cut: the isolated broker does not know that it was replaced.
        assert isinstance(nodes[0], LocalBroker)
        assert nodes[0].member.id in nodes[0].metadata().brokers
    assert fault.healed(arena, nodes).healed


def test_cut_replication_keeps_the_leader(arena: BareArena) -> None:
    """Hazard A2 depends on this: no follower fetches, but neither the leader nor the in-sync set changes."""
    fault, nodes = Sever("replication"), leader_of().pick(arena)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        state = arena.cluster.view().partitions(TOPIC)[0]
        assert state.leader == nodes[0].name
        assert set(state.in_sync) == set(state.replicas)
    assert fault.healed(arena, nodes).healed
