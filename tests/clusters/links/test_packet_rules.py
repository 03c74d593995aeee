"""The rules that cut links between containers, as text; suites/harness_checks/faults/test_packet_links.py tests their effect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.clusters.links.mesh import Member, Mesh, Port, members, members_with_zookeeper, ways
from harness.clusters.links.packet_rules import End, Loss, loss, rules_at, ruleset
from harness.contracts import Cut, Direction, Lane, Link
from harness.errors import SetupError
from harness.machine.network_namespace import in_network_of
from harness.provision import apt
from harness.provision import nft as provision

LINK, TO_CONTROLLER = Link("broker-1", "broker-2"), Link("broker-1", "controller-1", controller=True)
BETWEEN_SERVERS = Link("zookeeper-1", "zookeeper-2", zookeeper=True)
MEMBERS = members(2, 1, combined=False)
WITH_ZOOKEEPER = members_with_zookeeper(2, 3)


def rules(cut: Cut, by: str = "me", among: tuple[Member, ...] = MEMBERS) -> dict[str, list[str]]:
    ends = {m.name: End(m, f"10.0.0.{m.id}", lambda: None) for m in among}
    ports = {link: each for source in among for peer in among for link, each in ways(source, peer)}
    found = {name: rules_at(end, cut, ends, ports[cut.link], by) for name, end in ends.items()}
    return {name: each for name, each in found.items() if each}


@pytest.mark.parametrize(
    "among", [members(3, 3, False), members(3, 1, False), members(3, 0, True), members_with_zookeeper(3, 3)]
)
def test_ways_between_nodes_are_routes_of_the_mesh(among: tuple[Member, ...]) -> None:
    lanes = {lane.value for lane in Lane}
    routes = [(r.link, r.port) for r in Mesh(1, among).routes() if r.link.source not in lanes]
    own = [(link, ports) for source in among for peer in among for link, ports in ways(source, peer)]
    assert [(link, port) for link, ports in own for port in ports] == routes
    assert len({link for link, _ports in own}) == len(own)


def test_a_link_between_zookeeper_servers_is_cut_on_both_of_its_ports() -> None:
    found = rules(Cut(BETWEEN_SERVERS), among=WITH_ZOOKEEPER)
    assert [rule.partition(" drop ")[0] for rule in found["zookeeper-2"]] == [
        f"ip saddr 10.0.0.201 tcp dport {port:d}" for port in (Port.ZOOKEEPER_ELECTION, Port.ZOOKEEPER_PEER)
    ]
    assert [rule.partition(" drop ")[0] for rule in found["zookeeper-1"]] == [
        f"ip saddr 10.0.0.202 tcp sport {port:d}" for port in (Port.ZOOKEEPER_ELECTION, Port.ZOOKEEPER_PEER)
    ]
    one_way = Cut(Link("broker-1", "zookeeper-1", zookeeper=True), Direction.ANSWERS)
    ((name, [rule]),) = rules(one_way, among=WITH_ZOOKEEPER).items()
    assert (name, rule.partition(" jump ")[0]) == ("broker-1", "ip saddr 10.0.0.201 tcp sport 21100")


def test_a_cut_both_ways_drops_all_packets_where_they_arrive() -> None:
    assert rules(Cut(LINK)) == {
        "broker-2": ['ip saddr 10.0.0.1 tcp dport 21091 drop comment "me broker-1->broker-2 both packets"'],
        "broker-1": ['ip saddr 10.0.0.2 tcp sport 21091 drop comment "me broker-1->broker-2 both packets"'],
    }


def test_a_cut_one_way_drops_data_at_one_end() -> None:
    assert rules(Cut(LINK, Direction.REQUESTS)) == {
        "broker-2": [
            (
                "ip saddr 10.0.0.1 tcp dport 21091 ip dscp != 43 jump data "
                'comment "me broker-1->broker-2 requests data"'
            )
        ]
    }
    assert rules(Cut(LINK, Direction.ANSWERS)) == {
        "broker-1": [
            'ip saddr 10.0.0.2 tcp sport 21091 jump data comment "me broker-1->broker-2 answers data"'
        ]
    }
    assert {each: loss(each) for each in Direction} == {
        Direction.BOTH: Loss.PACKETS,
        Direction.REQUESTS: Loss.DATA,
        Direction.ANSWERS: Loss.DATA,
    }


def test_controllers_have_their_own_port() -> None:
    (rule,) = rules(Cut(TO_CONTROLLER, Direction.ANSWERS))["broker-1"]
    assert "ip saddr 10.0.0.101 tcp sport 21093 " in rule


def test_a_long_name_is_shortened_to_the_limit_of_the_kernel() -> None:
    (rule,) = rules(Cut(LINK, Direction.ANSWERS), by="x" * 500)["broker-1"]
    assert rule.endswith(f'comment "{"x" * 128}"')


def test_a_set_of_rules_replaces_the_table_in_one_step() -> None:
    text = ruleset(["ip saddr 10.0.0.1 drop"])
    assert text.startswith(
        "add table ip onceproof\ndelete table ip onceproof\ntable ip onceproof {\nchain data {\n"
    )
    assert "\ntype filter hook input priority -300; policy accept;\nip saddr 10.0.0.1 drop\n}\n}\n" in text


@pytest.mark.parametrize("words", range(5, 16))
def test_packets_longer_than_the_headers_are_data(words: int) -> None:
    assert f"\ntcp doff {words} meta length > {20 + 4 * words} drop\n" in ruleset(["x"])


def test_without_rules_there_is_no_table() -> None:
    assert ruleset([]) == "add table ip onceproof\ndelete table ip onceproof\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter a network namespace, even its own")
def test_a_process_that_has_ended_has_no_network() -> None:
    assert in_network_of(os.getpid(), lambda: 7) == 7
    with pytest.raises(ProcessLookupError, match="process 0 has ended"):
        in_network_of(0, lambda: 7)


def test_without_nft_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "find_nft", lambda: None)
    monkeypatch.setattr(apt, "may_install", lambda: False)
    with pytest.raises(
        SetupError, match=r"there is no nft, which cuts links between containers; install nftables"
    ):
        provision.nft()


def test_nft_is_found_outside_of_the_path_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nft"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(provision, "_SYSTEM", str(tmp_path))
    assert provision.find_nft() == program
