"""Faults on nodes in memory: their effects and proofs, and that the undo always runs."""

from __future__ import annotations

import pytest

from faults.kill import Kill
from faults.sever import Sever
from faults.slow_disk import SlowDisk
from harness import registry
from harness.contracts import Cut, Direction, Fault, Link, Node
from harness.errors import FaultError, UsageError
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena, FakeNode, make_arena


@pytest.fixture
def arena() -> FakeArena:
    return make_arena()


@pytest.fixture
def impatient(arena: FakeArena) -> None:
    arena.patience = IMPATIENT


FAULTS: list[tuple[Fault, str]] = [
    (Kill(), "kill"),
    (Sever(), "sever"),
    (Sever("replication"), "sever-replication"),
    (Sever("answers"), "sever-answers"),
    (Sever(direction=Direction.REQUESTS), "sever-isolate-requests"),
    (Sever("replication", Direction.ANSWERS), "sever-replication-answers"),
    (SlowDisk(), "slow_disk"),
]


@pytest.mark.parametrize(("fault", "word"), FAULTS)
def test_passes_the_check_of_its_contract(arena: FakeArena, fault: Fault, word: str) -> None:
    assert str(fault) == word
    check_fault(fault, arena, [arena.cluster.brokers[1]])


@pytest.mark.parametrize("name", ["kill", "sever", "slow_disk"])
def test_is_found_by_its_name(name: str) -> None:
    assert str(registry.load("fault", name)()) == name


def test_kill_reports_the_new_leaders(arena: FakeArena) -> None:
    with Kill().hold(arena, [arena.cluster.brokers[1]]) as bite:
        assert bite.proof.startswith(
            "process of broker-2 gone; leader of orders-0 moved from broker-2 to broker-3 after 0."
        )
        assert bite.measured["partitions_moved"] == 1
    assert arena.cluster.brokers[1].calls == ["kill", "restart"]


def test_kill_of_a_broker_that_leads_nothing(arena: FakeArena) -> None:
    arena.cluster.replicas = {0: ("broker-2",)}
    with Kill().hold(arena, [arena.cluster.brokers[0]]) as bite:
        assert bite.bit
        assert "led no partition of orders" in bite.proof


def test_kill_of_the_only_copy_leaves_no_leader(arena: FakeArena) -> None:
    arena.cluster.replicas = {0: ("broker-2",)}
    with Kill().hold(arena, [arena.cluster.brokers[1]]) as bite:
        assert bite.bit
        assert "to no broker" in bite.proof


def test_kill_of_the_active_controller(arena: FakeArena) -> None:
    with Kill().hold(arena, [arena.cluster.brokers[2]]) as bite:
        assert "active controller moved from broker-3 to broker-2" in bite.proof


def test_kill_works_on_workers_too(arena: FakeArena) -> None:
    worker = arena.workers[0]
    with Kill().hold(arena, [worker]) as bite:
        assert bite.bit
        assert not worker.running()
    assert worker.running()
    assert Kill().healed(arena, [worker]).healed


def test_a_kill_that_fails_does_not_bite(arena: FakeArena) -> None:
    arena.cluster.brokers[1].stubborn = True
    with Kill().hold(arena, [arena.cluster.brokers[1]]) as bite:
        assert not bite.bit


@pytest.mark.usefixtures("impatient")
def test_no_bite_when_leaders_stay(arena: FakeArena) -> None:
    with Kill().hold(arena, [arena.cluster.brokers[1]]) as bite:
        assert bite.bit
    arena.cluster.brokers[1].reachable = lambda: True  # type: ignore[method-assign]
    with Kill().hold(arena, [arena.cluster.brokers[1]]) as bite:
        assert not bite.bit
        assert "still leads orders-0" in bite.proof


@pytest.mark.parametrize("fault", [fault for fault, _word in FAULTS], ids=str)
def test_without_a_target_nothing_bites(arena: FakeArena, fault: Fault) -> None:
    with fault.hold(arena, []) as bite:
        assert not bite.bit


@pytest.mark.parametrize("fault", [Sever(), Sever("answers"), SlowDisk()], ids=str)
def test_what_has_no_effect_does_not_bite_and_is_undone(arena: FakeArena, fault: Fault) -> None:
    target = arena.cluster.brokers[1]
    target.stubborn = True
    with fault.hold(arena, [target]) as bite:
        assert not bite.bit
    assert target.calls[-1].startswith("mend")


@pytest.mark.parametrize(
    ("fault", "links"),
    [
        (Sever(), ["b1->b2", "b2->b1", "b2->b3", "b3->b2"]),
        (Sever("replication"), ["b1->b2", "b3->b2"]),
        (Sever("answers"), ["produce->b2"]),
    ],
    ids=str,
)
def test_sever_cuts_the_links_of_its_shape_and_no_others(
    arena: FakeArena, fault: Sever, links: list[str]
) -> None:
    target = arena.cluster.brokers[1]
    with fault.hold(arena, [target]):
        assert sorted(str(cut.link).replace("broker-", "b") for cut in target.cuts) == links
    assert target.cuts == []


def test_sever_answers_leaves_requests_alone(arena: FakeArena) -> None:
    target = arena.cluster.brokers[1]
    with Sever("answers").hold(arena, [target]) as bite:
        assert bite.bit, bite.proof
        ways = target.passes(Link("produce", "broker-2"))
        assert (ways[Direction.REQUESTS], ways[Direction.ANSWERS]) == (True, False)


def test_slow_disk_reports_both_times_and_hits_the_topic(arena: FakeArena) -> None:
    target = arena.cluster.brokers[1]
    with SlowDisk(delay_ms=80).hold(arena, [target]) as bite:
        assert bite.proof == "append at broker-2 rose from 1.0 to 81.0 ms (quickest of 7)"
    assert target.calls == ["break_disk orders", "mend_disk"]


@pytest.mark.usefixtures("impatient")
def test_healing_is_not_claimed_while_something_is_left(arena: FakeArena) -> None:
    first = arena.cluster.brokers[1]
    first.alive = False
    assert "not running" in Kill().healed(arena, [first]).proof
    first.alive, first.delay_ms = True, 50
    healing = SlowDisk().healed(arena, [first])
    assert not healing.healed
    assert "broker-2 51.0 ms" in healing.proof
    first.delay_ms = 0
    first.cuts = [Cut(Link("produce", "broker-2"), Direction.ANSWERS)]
    assert "produce->broker-2" in Sever("answers").healed(arena, [first]).proof
    arena.cluster.brokers[2].alive = False
    assert "orders-0 has leader" in Kill().healed(arena, [first]).proof
    arena.cluster.dumb = True
    assert "no broker answers" in Kill().healed(arena, [first]).proof


def test_a_node_without_the_power_is_refused(arena: FakeArena) -> None:
    class Bare:
        name = "bare"

    nodes: list[Node] = [Bare()]
    for fault in (Kill(), Sever(), SlowDisk()):
        assert not isinstance(nodes[0], fault.needs)
        with pytest.raises(FaultError, match="bare"), fault.hold(arena, nodes):
            pass


def test_bad_settings_are_named() -> None:
    with pytest.raises(UsageError, match=r"'moat'.*isolate, replication, answers"):
        Sever("moat")
    with pytest.raises(UsageError, match="delay_ms=1"):
        SlowDisk(delay_ms=1)


def test_a_failing_undo_does_not_prevent_the_others(arena: FakeArena) -> None:
    broken, whole = FakeNode("broker-1", ["broker-2"]), arena.cluster.brokers[1]

    def refuse(by: str | None = None) -> None:
        raise FaultError("on purpose")

    broken.mend = refuse  # type: ignore[method-assign]
    with pytest.raises(FaultError, match="on purpose"), Sever("answers").hold(arena, [broken, whole]):
        pass
    assert whole.cuts == []


def test_when_every_broker_is_hit_none_is_left_to_lead(arena: FakeArena) -> None:
    with Kill().hold(arena, arena.cluster.brokers) as bite:
        assert bite.bit
        assert "no other broker is left to lead orders-0, orders-1, the controller quorum" in bite.proof


def test_a_worker_heals_whatever_the_cluster_does(arena: FakeArena) -> None:
    arena.cluster.dumb = True
    assert Kill().healed(arena, [arena.workers[0]]).healed
