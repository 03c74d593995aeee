"""Faults on links without a server: the links they hit, their proofs, and that each undoes only its own changes."""

from __future__ import annotations

import pytest

from faults.flaky_link import FlakyLink
from faults.sever import SHAPES, Sever
from faults.slow_link import SlowLink
from harness import registry
from harness.contracts import Direction, Fault, Link, Shapeable, Toxic
from harness.errors import ClusterError, FaultError, UsageError
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT
from tests.faults.mesh_arena import MeshArena, make_arena

ONE_WAY = (Direction.REQUESTS, Direction.ANSWERS)


FAULTS: list[tuple[Fault, str]] = [
    *((Sever(shape), f"sever-{shape}") for shape in SHAPES if shape != "isolate"),
    *(
        (Sever(shape, way), f"sever-{shape}-{way}")
        for shape in SHAPES
        if shape != "answers"
        for way in ONE_WAY
    ),
    (SlowLink(), "slow_link"),
    (SlowLink(jitter_ms=20, lanes="replication"), "slow_link-jitter-replication"),
    (SlowLink(0, rate_kb_s=50, direction=Direction.REQUESTS), "slow_link-rate-requests"),
    (SlowLink(0, slice_bytes=100, direction=Direction.ANSWERS), "slow_link-slices-answers"),
    (SlowLink(rate_kb_s=50, slice_bytes=100, lanes="clients"), "slow_link-rate-slices-clients"),
    (FlakyLink(), "flaky_link"),
    (FlakyLink(after_ms=200, direction=Direction.ANSWERS), "flaky_link-answers"),
    (FlakyLink("half_open"), "flaky_link-half_open"),
    (FlakyLink("close_after", lanes="clients"), "flaky_link-close_after-clients"),
    (FlakyLink("close_after", direction=Direction.REQUESTS), "flaky_link-close_after-requests"),
]


@pytest.mark.parametrize(("fault", "word"), FAULTS)
@pytest.mark.parametrize("combined", [False, True], ids=["apart", "combined"])
def test_passes_the_check_of_its_contract(fault: Fault, word: str, combined: bool) -> None:
    arena = make_arena(combined=combined)
    assert str(fault) == word
    check_fault(fault, arena, [arena.cluster["broker-1"]])


@pytest.mark.parametrize("fault", [fault for fault, _word in FAULTS], ids=str)
def test_a_fault_without_effect_does_not_bite_and_is_undone(fault: Fault) -> None:
    arena = make_arena(patience=IMPATIENT)
    arena.cluster.toxiproxy.stubborn = True
    with fault.hold(arena, [arena.cluster["broker-1"]]) as bite:
        assert not bite.bit, bite.proof
        assert arena.cluster.residue(), "it was tried"
    assert arena.cluster.residue() == []


@pytest.mark.parametrize("fault", [fault for fault, _word in FAULTS], ids=str)
def test_healing_is_not_claimed_while_it_is_held(fault: Fault) -> None:
    arena = make_arena(patience=IMPATIENT)
    nodes = [arena.cluster["broker-1"]]
    with fault.hold(arena, nodes):
        healing = fault.healed(arena, nodes)
        assert not healing.healed, healing.proof
    assert fault.healed(arena, nodes).healed


@pytest.mark.parametrize("fault", [Sever(), Sever("ring"), SlowLink(), FlakyLink("half_open")], ids=str)
def test_a_fault_that_fails_half_way_is_undone(fault: Fault) -> None:
    arena = make_arena()
    arena.cluster.toxiproxy.room = 3
    hold = fault.hold(arena, [arena.cluster["broker-1"]])
    with pytest.raises(ClusterError, match="on purpose"):
        hold.__enter__()
    assert arena.cluster.residue() == []


@pytest.mark.parametrize("fault", [Sever("clients"), SlowLink(lanes="clients"), FlakyLink(lanes="clients")])
def test_a_controller_has_no_clients_to_cut_off(fault: Fault) -> None:
    arena = make_arena()
    for nodes in ([], [arena.cluster["controller-1"]]):
        with fault.hold(arena, nodes) as bite:
            assert not bite.bit
    assert "controller-1: there is no link" in bite.proof


@pytest.mark.parametrize("name", ["slow_link", "flaky_link"])
def test_is_found_by_its_name(name: str) -> None:
    assert str(registry.load("fault", name)()) == name


@pytest.mark.parametrize("way", ONE_WAY)
def test_a_one_way_cut_leaves_the_other_way_open(way: Direction) -> None:
    arena = make_arena()
    node = arena.cluster["broker-1"]
    with Sever("clients", way).hold(arena, [node]) as bite:
        assert bite.bit
        ways = node.passes(Link("produce", "broker-1"))
        assert {each: ways[each] for each in ONE_WAY} == {each: each is not way for each in ONE_WAY}
        assert all(node.passes(Link("broker-2", "broker-1")).values())


def test_a_cut_of_requests_bites_only_if_late_answers_come_through() -> None:
    arena = make_arena()
    nodes = [arena.cluster["broker-1"]]
    fault = Sever("isolate", Direction.REQUESTS)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["late_answers"] == 2, "the links on which followers fetch from the leader"
        assert "on 5 only Toxiproxy's state" in bite.proof
    arena.cluster.links.answers_lost = True
    with fault.hold(arena, nodes) as bite:
        assert not bite.bit
        assert "answers are cut too" in bite.proof
    with Sever("isolate", Direction.ANSWERS).hold(arena, nodes) as bite:
        assert bite.bit, "no leader is asked there"


def doers(arena: MeshArena) -> set[str]:
    """Return the faults that have toxics in place, from the toxics' names."""
    return {left.split("broker-1.")[1].split("-")[0] for left in arena.cluster.residue()}


def test_two_faults_on_one_link_each_undo_their_own_change() -> None:
    arena = make_arena()
    nodes = [arena.cluster["broker-1"]]
    slow = SlowLink(lanes="clients").hold(arena, nodes)
    flaky = FlakyLink("close_after", lanes="clients").hold(arena, nodes)
    slow.__enter__()
    flaky.__enter__()
    assert doers(arena) == {"slow_link", "flaky_link"}
    slow.__exit__(None, None, None)  # not in the reverse order
    assert doers(arena) == {"flaky_link"}
    flaky.__exit__(None, None, None)
    assert arena.cluster.residue() == []


def test_a_link_cut_twice_stays_cut_until_the_last_fault_ends() -> None:
    arena = make_arena()
    node, link = arena.cluster["broker-1"], Link("produce", "broker-1")
    with Sever("clients", Direction.ANSWERS).hold(arena, [node]):
        with Sever("answers").hold(arena, [node]):
            pass
        assert not node.passes(link)[Direction.ANSWERS]
    assert node.passes(link)[Direction.BOTH]


def test_a_slow_link_gets_slower_under_a_second_fault() -> None:
    arena = make_arena()
    nodes = [arena.cluster["broker-1"]]
    with SlowLink().hold(arena, nodes), SlowLink(jitter_ms=10).hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["during_p50_ms"] > 300


def test_a_link_between_two_targets_is_shaped_once() -> None:
    arena = make_arena()
    nodes = [arena.cluster["broker-1"], arena.cluster["broker-2"]]
    with SlowLink(lanes="replication").hold(arena, nodes) as bite:
        assert bite.measured["links"] == 6
        assert bite.measured["during_p50_ms"] == pytest.approx(201)


def test_a_node_acts_on_its_own_links_only() -> None:
    node = make_arena().cluster["broker-1"]
    assert isinstance(node, Shapeable)
    stranger = Link("broker-2", "broker-3")
    with pytest.raises(FaultError, match="broker-1 is at no end of broker-2->broker-3"):
        node.shape([stranger], [Toxic("latency", {"latency": 1})])
    with pytest.raises(FaultError, match="no link produce->nobody"):
        node.passes(Link("produce", "nobody"))


def test_without_a_name_every_change_at_a_node_is_undone() -> None:
    arena = make_arena()
    node, other = arena.cluster["broker-1"], arena.cluster["broker-2"]
    link = Link("broker-1", "broker-2")
    for by in ("", "one", "two"):
        node.shape([link], [Toxic("latency", {"latency": 1, "jitter": 0})], by)
    other.shape([link], [Toxic("latency", {"latency": 1, "jitter": 0})])
    node.unshape("one")
    assert len(arena.cluster.residue()) == 6
    node.mend()
    assert len(arena.cluster.residue()) == 6, "mending cuts leaves other toxics"
    node.unshape()
    assert len(arena.cluster.residue()) == 2
    other.unshape()
    assert arena.cluster.residue() == []


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Sever("moat"), "'moat'.*isolate.*ring.*controllers"),
        (lambda: Sever("answers", Direction.REQUESTS), "cuts answers, not requests"),
        (lambda: SlowLink(lanes="motorway"), "'motorway'.*all, clients, producers, replication, controllers"),
        (lambda: SlowLink(0), "nothing is slow"),
        (lambda: SlowLink(5), "latency_ms=5"),
        (lambda: SlowLink(100, jitter_ms=60), "jitter_ms=60"),
        (lambda: SlowLink(rate_kb_s=100_000), "rate_kb_s=100000"),
        (lambda: SlowLink(slice_bytes=1), "slice_bytes=1"),
        (lambda: FlakyLink("moody"), "'moody'.*reset, half_open, close_after"),
        (lambda: FlakyLink(after_ms=-1), "after_ms=-1"),
        (lambda: FlakyLink("close_after", after_bytes=3), "after_bytes=3"),
        (lambda: FlakyLink("half_open", direction=Direction.ANSWERS), "nothing either way"),
    ],
)
def test_bad_settings_are_named(make: type[Fault], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make()
