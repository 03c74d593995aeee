"""Links cut by packet filters, in real networks: each cut affects its link and direction only."""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from harness.clusters.links.mesh import Port
from harness.clusters.links.packet_filter import PacketLinks
from harness.clusters.links.packet_rules import End, ruleset
from harness.contracts import Cut, Direction, Ending, Link, Questions
from harness.errors import FaultError
from harness.kafka.protocol import raw_client
from harness.machine.network_namespace import in_network_of
from harness.waiting import wait_until
from suites.harness_checks.faults._networks import Networks
from suites.harness_checks.faults._tiny_server import API_VERSIONS, CHUNK_BYTES, PUT, STREAM, arrived

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may make networks and set rules in them"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="the program ip is missing (Debian: iproute2)"),
]

LINK, BACK, CONTROLLER = Link("one", "two"), Link("two", "one"), Link("one", "three", controller=True)
OPEN = {Direction.REQUESTS: True, Direction.ANSWERS: True, Direction.BOTH: True}
DEAD = dict.fromkeys(Direction, False)
ONLY_ANSWERS = {**DEAD, Direction.ANSWERS: True}
ONLY_REQUESTS = {**DEAD, Direction.REQUESTS: True}
LEFT = {Direction.BOTH: DEAD, Direction.REQUESTS: ONLY_ANSWERS, Direction.ANSWERS: ONLY_REQUESTS}
BULK_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Networks]:
    with closing(Networks(tmp_path_factory.mktemp("networks"))) as networks:
        yield networks


@pytest.fixture(scope="module")
def ends(networks: Networks) -> dict[str, End]:
    return {
        "one": networks.end("one"),
        "two": networks.end("two"),
        "three": networks.end("three", broker=False, controller=True),
    }


@pytest.fixture
def links(ends: dict[str, End]) -> Iterator[PacketLinks]:
    links = PacketLinks(ends)
    assert links.residue() == []
    yield links
    for by in links.doers():
        links.take_back(by)
    assert links.residue() == []


def every_link(links: PacketLinks, ends: dict[str, End]) -> list[Link]:
    return list(dict.fromkeys(link for name in ends for link in links.of(name)))


def probe(links: PacketLinks, which: Sequence[Link]) -> dict[Link, dict[Direction, bool]]:
    with ThreadPoolExecutor(len(which)) as pool:
        return {link: dict(ways) for link, ways in zip(which, pool.map(links.passes, which), strict=True)}


def inside(ends: dict[str, End], name: str, *command: str, text: str = "") -> str:
    pid = ends[name].pid()
    assert pid is not None
    done = in_network_of(
        pid, lambda: subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    )
    return done.stdout


def connect(ends: dict[str, End], link: Link) -> socket.socket:
    pid, port = ends[link.source].pid(), Port.CONTROLLER if link.controller else Port.INTERNAL
    assert pid is not None
    address = (ends[link.destination].address, int(port))
    return in_network_of(pid, lambda: socket.create_connection(address, timeout=5.0))


def asked(ends: dict[str, End], of: str) -> int:
    """Return the number of bytes that the server has received, as it reports over a link that is not cut."""
    pid = ends["three"].pid()
    assert pid is not None
    return in_network_of(pid, lambda: arrived((ends[of].address, Port.INTERNAL), 5.0))


def round_trip(connection: socket.socket) -> bool:
    connection.sendall(raw_client.request(API_VERSIONS, 0, b""))
    return len(connection.recv(14, socket.MSG_WAITALL)) == 14


def received(connection: socket.socket, for_s: float) -> int:
    total, deadline = 0, time.monotonic() + for_s
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            total += len(connection.recv(1 << 16))
        except TimeoutError:
            break
    return total


def test_the_links_are_those_of_the_mesh(links: PacketLinks, ends: dict[str, End]) -> None:
    brokers = {LINK, BACK}
    controllers = {CONTROLLER, Link("two", "three", controller=True)}
    assert set(every_link(links, ends)) == brokers | controllers
    assert set(links.of("three")) == controllers


@pytest.mark.parametrize("link", [LINK, CONTROLLER], ids=str)
@pytest.mark.parametrize("direction", Direction)
def test_cuts_affect_only_their_links_and_directions(
    links: PacketLinks, ends: dict[str, End], link: Link, direction: Direction
) -> None:
    everything = every_link(links, ends)
    assert all(ways == OPEN for ways in probe(links, everything).values())
    links.sever([Cut(link, direction)], "cut.one.test")
    begun = time.monotonic()
    now = probe(links, everything)
    took = time.monotonic() - begun
    for each, ways in now.items():
        assert ways == (LEFT[direction] if each == link else OPEN), f"{each}: {ways}"
    assert took < 2.0
    lost = "packets" if direction is Direction.BOTH else "data"
    assert {rule.split(": ", 1)[1] for rule in links.residue()} == {f"cut.one.test {link} {direction} {lost}"}
    links.take_back("cut.one.test")
    assert all(ways == OPEN for ways in probe(links, everything).values())
    assert links.residue() == []


def test_two_one_way_cuts_stop_both_directions(links: PacketLinks) -> None:
    """Connections can still be opened, but no data passes: the probe gets no answer either."""
    links.sever([Cut(LINK, Direction.REQUESTS), Cut(LINK, Direction.ANSWERS)], "test")
    assert links.passes(LINK) == DEAD


def test_an_older_connection_is_cut_and_then_continues(links: PacketLinks, ends: dict[str, End]) -> None:
    with connect(ends, LINK) as connection:
        assert round_trip(connection)
        links.sever([Cut(LINK)], "test")
        connection.settimeout(1.0)
        connection.sendall(raw_client.request(API_VERSIONS, 0, b""))
        with pytest.raises(TimeoutError):
            connection.recv(1)
        links.take_back("test")
        connection.settimeout(5.0)
        assert len(connection.recv(14, socket.MSG_WAITALL)) == 14, "lost data is sent again"
        assert round_trip(connection)


def test_while_answers_are_cut_requests_of_any_size_arrive(
    links: PacketLinks, ends: dict[str, End], record_property: Callable[[str, object], None]
) -> None:
    """On one connection an answer is lost, then more data is sent than a stalled connection would accept."""
    before = asked(ends, "two")
    with connect(ends, LINK) as connection:
        assert round_trip(connection)
        links.sever([Cut(LINK, Direction.ANSWERS)], "test")
        begun = time.monotonic()
        connection.sendall(raw_client.request(API_VERSIONS, 0, b""))
        connection.settimeout(20.0)
        connection.sendall(raw_client.request(PUT, 0, bytes(BULK_BYTES)))
        wait_until(lambda: asked(ends, "two") == before + BULK_BYTES, 20.0, "requests do not arrive")
        record_property("arrived_s", took := time.monotonic() - begun)
        print(f"\n{BULK_BYTES >> 20} MiB of requests arrived in {took:.2f} s while answers were cut")
        assert received(connection, 0.5) == 0
        links.take_back("test")
        connection.settimeout(20.0)
        assert len(connection.recv(14, socket.MSG_WAITALL)) == 14, "the lost answer comes now"


def test_while_requests_are_cut_answers_go_on(links: PacketLinks, ends: dict[str, End]) -> None:
    before = asked(ends, "two")
    with connect(ends, LINK) as streaming, connect(ends, LINK) as asking:
        streaming.sendall(raw_client.request(STREAM, 0, b""))
        open_rate = received(streaming, 1.0)
        links.sever([Cut(LINK, Direction.REQUESTS)], "test")
        asking.sendall(raw_client.request(PUT, 0, bytes(1000)))
        cut_rate = received(streaming, 1.0)
        print(f"\nanswers: {open_rate} bytes in a second, {cut_rate} while requests were cut")
        assert cut_rate > open_rate / 2 > 10 * CHUNK_BYTES
        assert asked(ends, "two") == before
        links.take_back("test")
        wait_until(lambda: asked(ends, "two") == before + 1000, 10.0, "lost data is not sent again")


@pytest.mark.control
def test_losing_all_packets_of_requests_stalls_answers_too(ends: dict[str, End]) -> None:
    """This is why a one-way cut drops only packets with data."""
    everything = f"ip saddr {ends['one'].address} tcp dport {Port.INTERNAL:d} drop"
    with connect(ends, LINK) as streaming:
        streaming.sendall(raw_client.request(STREAM, 0, b""))
        open_rate = received(streaming, 1.0)
        inside(ends, "two", "nft", "-f", "-", text=ruleset([everything]))
        received(streaming, 1.0)  # the rest of the window
        cut_rate = received(streaming, 1.0)
        inside(ends, "two", "nft", "-f", "-", text=ruleset([]))
    print(f"\nanswers: {open_rate} bytes in a second, {cut_rate} in the second one without acknowledgements")
    assert cut_rate < open_rate / 4


def test_a_large_request_is_lost_as_a_whole(links: PacketLinks, ends: dict[str, End]) -> None:
    """Only its last segment has the push flag: a rule for that flag would let most of the request pass."""
    with connect(ends, LINK) as connection:
        links.sever([Cut(LINK, Direction.REQUESTS)], "test")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.sendall(raw_client.request(PUT, 0, bytes(BULK_BYTES)))
        assert arrived_on(ends, LINK, connection.getsockname()[1]) == 0
        links.take_back("test")


def arrived_on(ends: dict[str, End], link: Link, port: int) -> int:
    """Return the bytes that arrived on the connection from this port, as the server's kernel reports."""
    output = inside(ends, link.destination, "ss", "-tinH", f"dport = :{port}")
    found = re.search(r"bytes_received:(\d+)", output)
    return int(found[1]) if found else 0


def test_earlier_requests_are_answered_while_requests_are_cut(links: PacketLinks) -> None:
    with links.long_question(LINK, "orders", 0, wait_s=1.5) as answered:
        links.sever([Cut(LINK, Direction.REQUESTS)], "test")
        assert not answered(0.0)
        assert answered(3.0)
    with links.long_question(BACK, "orders", 0, wait_s=0.5) as answered:
        links.sever([Cut(BACK, Direction.ANSWERS)], "test")
        assert not answered(1.5)


def test_a_conversation_through_a_link_is_measured(links: PacketLinks) -> None:
    assert links.talk(LINK, Questions(3, limit_s=2.0)).ending is Ending.ANSWERED
    links.sever([Cut(LINK, Direction.ANSWERS)], "test")
    assert links.talk(LINK, Questions(3, limit_s=0.5)).ending is Ending.SILENT


def test_two_owners_cut_one_link_and_each_removes_its_own_cut(links: PacketLinks) -> None:
    links.sever([Cut(LINK, Direction.REQUESTS), Cut(BACK)], "a")
    links.sever([Cut(LINK, Direction.REQUESTS), Cut(LINK, Direction.ANSWERS)], "b")
    assert links.doers() == ["a", "b"]
    assert links.passes(LINK) == DEAD
    links.take_back("b")
    assert links.passes(LINK) == ONLY_ANSWERS
    assert links.passes(BACK) == DEAD
    assert {rule.split(": ")[1].split()[0] for rule in links.residue()} == {"a"}
    links.take_back("a")
    links.take_back("a")
    assert links.doers() == []
    assert links.passes(LINK) == links.passes(BACK) == OPEN


@pytest.mark.parametrize("direction", Direction)
def test_a_new_network_has_no_rules_until_they_are_renewed(
    networks: Networks, links: PacketLinks, direction: Direction
) -> None:
    links.sever([Cut(LINK, direction), Cut(CONTROLLER)], "test")
    for name in ("two", "one"):
        networks.kill(name)
        assert links.passes(LINK) == DEAD, "no server is there"
        networks.start(name)
        links.renew(name)
        assert links.passes(LINK) == LEFT[direction]
    assert links.passes(CONTROLLER) == DEAD
    assert links.passes(BACK) == OPEN


def test_a_cut_of_a_stopped_node_takes_effect_when_it_starts(networks: Networks, links: PacketLinks) -> None:
    networks.kill("two")
    links.sever([Cut(LINK, Direction.REQUESTS)], "test")
    networks.start("two")
    assert links.passes(LINK) == OPEN, "its network is new: nothing is cut without `renew`"
    links.renew("two")
    assert links.passes(LINK) == ONLY_ANSWERS
    networks.kill("two")
    links.take_back("test")
    networks.start("two")
    links.renew("two")
    assert links.passes(LINK) == OPEN


def test_leftover_rules_of_another_harness_are_reported(links: PacketLinks, ends: dict[str, End]) -> None:
    PacketLinks(ends).sever([Cut(LINK, Direction.ANSWERS)], "a harness that forgot")
    assert links.residue() == [f"one: a harness that forgot {LINK} answers data"]
    links.renew("one")
    assert links.residue() == []


def test_an_unknown_link_is_an_error_that_lists_the_links(links: PacketLinks) -> None:
    with pytest.raises(FaultError, match=r"no link one->nobody; there are: one->two, "):
        links.sever([Cut(Link("one", "nobody"))], "test")
    assert links.doers() == []


def test_cutting_off_a_node_is_fast(
    links: PacketLinks, record_property: Callable[[str, object], None]
) -> None:
    cut_s, mend_s = [], []
    for _ in range(20):
        begun = time.monotonic()
        links.sever([Cut(link) for link in links.of("one")], "test")
        cut_s.append(time.monotonic() - begun)
        begun = time.monotonic()
        links.take_back("test")
        mend_s.append(time.monotonic() - begun)
    record_property("cut_s", statistics.median(cut_s))
    print(
        f"\n{len(links.of('one'))} links: cut in {statistics.median(cut_s):.3f} s (slowest {max(cut_s):.3f}), "
        f"mended in {statistics.median(mend_s):.3f} s"
    )
    assert statistics.median(cut_s) < 0.5
