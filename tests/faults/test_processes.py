"""Kill, restart, rolling restart, pause and starve on nodes in memory, and their powers on real processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from faults.kill import Kill
from faults.pause import Pause
from faults.restart import Restart
from faults.rolling_restart import RollingRestart
from faults.starve import Starve
from harness import registry
from harness.contracts import (
    Counters,
    Fault,
    Killable,
    Node,
    Pausable,
    PausableAndKillable,
    Starvable,
    Stoppable,
)
from harness.errors import FaultError, UsageError
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena, FakeNode
from tests.faults.process_nodes import ProcessNode, arena_of_processes

FAULTS: list[Fault] = [Kill(), Restart(), RollingRestart(), Pause(), Starve()]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_passes_the_check_of_its_contract(fault: Fault) -> None:
    arena, nodes = arena_of_processes()
    check_fault(fault, arena, [nodes[1]])
    check_fault(fault, arena, nodes[:2])
    assert str(registry.load("fault", str(fault))()) == str(fault)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_without_effect_does_not_bite_and_is_undone(fault: Fault) -> None:
    arena, nodes = arena_of_processes(IMPATIENT)
    nodes[1].stubborn = True
    with fault.hold(arena, [nodes[1]]) as bite:
        assert not bite.bit, bite.proof
    assert nodes[1].calls[-1] in ("restart", "resume", "feed")
    with fault.hold(arena, []) as bite:
        assert not bite.bit


def test_restart_reports_exit_codes_and_the_new_leaders() -> None:
    arena, nodes = arena_of_processes()
    with Restart().hold(arena, [nodes[1]]) as bite:
        assert bite.proof.startswith("broker-2 ended with code 143 after 0.")
        assert "leader of orders-0 moved from broker-2 to broker-3" in bite.proof
        assert (bite.measured["stopped"], bite.measured["killed"]) == (1, 0)
    assert nodes[1].calls == ["shut_down", "restart"]


def test_a_node_that_does_not_end_is_killed_and_the_proof_says_so() -> None:
    arena, nodes = arena_of_processes()
    nodes[1].hangs = True
    with Restart().hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert "broker-2 was killed, as it did not end by itself" in bite.proof
        assert "broker-1 ended with code 143" in bite.proof
        assert (bite.measured["stopped"], bite.measured["killed"]) == (3, 1)
    assert nodes[1].calls == ["shut_down", "kill", "restart"]


def test_a_roll_has_one_node_down_at_a_time() -> None:
    arena, nodes = arena_of_processes()
    order: list[str] = []
    for node in nodes:

        def shut_down(limit_s: float, node: ProcessNode = node) -> int:
            assert all(other.alive for other in nodes)
            order.append(node.name)
            node.alive = False
            return 143

        node.shut_down = shut_down  # type: ignore[method-assign,assignment]
    with RollingRestart().hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        assert order == ["broker-1", "broker-2", "broker-3"]
        assert all(node.running() for node in nodes), "the roll is over when the window begins"
        assert bite.measured["restarted"] == 3


def test_a_roll_ends_where_a_node_does_not_come_back() -> None:
    arena, nodes = arena_of_processes(IMPATIENT)
    arena.cluster.brokers[2].alive = False
    with RollingRestart().hold(arena, nodes[:2]) as bite:
        assert not bite.bit
        assert "the roll ended at broker-1" in bite.proof
        assert nodes[1].calls == [], "the next one was left alone"


def test_a_paused_node_leads_nothing_and_wakes_up() -> None:
    arena, nodes = arena_of_processes()
    with Pause().hold(arena, [nodes[1]]) as bite:
        assert bite.proof.startswith("process of broker-2 stopped; leader of orders-0 moved from broker-2")
    assert nodes[1].calls == ["pause", "resume"]


def test_healing_is_not_claimed_too_early() -> None:
    arena, nodes = arena_of_processes(IMPATIENT)
    nodes[1].stopped = True
    assert "broker-2 still stopped" in Pause().healed(arena, [nodes[1]]).proof
    nodes[1].stopped, nodes[1].alive = False, False
    for fault in (Kill(), Restart(), RollingRestart()):
        assert "broker-2 not running" in fault.healed(arena, [nodes[1]]).proof
    nodes[1].alive, nodes[1].share = True, 0.1
    assert "used only broker-2 0.10" in Starve().healed(arena, [nodes[1]]).proof


def test_without_controllers_no_leader_is_elected() -> None:
    arena, nodes = arena_of_processes()
    with Kill().hold(arena, nodes[1:]) as bite:
        assert bite.bit, bite.proof
        assert "no majority of controllers is left to elect a leader of orders-0" in bite.proof


def test_bad_settings_and_nodes_without_the_power_are_named() -> None:
    for wrong in (lambda: Restart(0), lambda: RollingRestart(-1)):
        with pytest.raises(UsageError, match="limit_s"):
            wrong()
    for share in (0.0, 0.9):
        with pytest.raises(UsageError, match=f"cpu_share={share:g}"):
            Starve(share)
    arena, _ = arena_of_processes()
    plain: list[Node] = [arena.workers[0]]
    for fault, power in ((Restart(), Stoppable), (Pause(), Pausable), (Starve(), Starvable)):
        assert not isinstance(plain[0], power)
        with pytest.raises(FaultError, match="producer-1"), fault.hold(arena, plain):
            pass


def test_a_load_below_the_limit_does_not_bite() -> None:
    arena, nodes = arena_of_processes(IMPATIENT)
    nodes[1].cpu_under_load = lambda for_s: 0.05  # type: ignore[method-assign]
    with Starve(0.1).hold(arena, [nodes[1]]) as bite:
        assert not bite.bit


# --- kill with unread: TRUST T4 ---


@dataclass
class Sender(FakeNode):
    """A producer that has `per_look` more records acked whenever its counters are read."""

    role, stays_in_group = "producer", False
    transactional_id: str = ""
    per_look: int = 100
    acked: int = 0
    client_settings: Mapping[str, object] = field(default_factory=dict)

    def counters(self) -> Counters:
        self.acked += self.per_look
        return Counters(acked=self.acked)

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def worked_on(self) -> Mapping[int, int]: ...  # type: ignore[empty-body]
    def paused(self) -> bool: ...  # type: ignore[empty-body]

    def stop_at(self, moment: str) -> None: ...
    def waits(self) -> bool:
        return False

    def go_on(self) -> None: ...


def arena_with_a_sender(per_look: int = 100) -> tuple[FakeArena, list[ProcessNode]]:
    arena, nodes = arena_of_processes()
    sender = Sender("producer-1", per_look=per_look)
    return FakeArena(arena.cluster, [sender], patience=0.02), nodes


def test_a_broker_dies_with_records_that_it_never_read() -> None:
    arena, nodes = arena_with_a_sender()
    with Kill(unread=250).hold(arena, [nodes[1]]) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["acked_while_stopped"] >= 250
        assert "stopped" in bite.proof
        assert nodes[1].calls == ["pause", "kill"], "it reads nothing between the two"
    assert nodes[1].calls == ["pause", "kill", "restart"]


def test_a_kill_without_the_requested_unread_records_does_not_bite() -> None:
    arena, nodes = arena_with_a_sender(per_look=0)
    with Kill(unread=250).hold(arena, [nodes[1]]) as bite:
        assert not bite.bit
        assert "0 of 250" in bite.proof
    assert nodes[1].alive
    assert not nodes[1].stopped


def test_unread_does_not_bite_when_the_broker_is_not_stopped() -> None:
    arena, nodes = arena_with_a_sender()
    nodes[1].stubborn = True
    with Kill(unread=250).hold(arena, [nodes[1]]) as bite:
        assert not bite.bit
        assert "not stopped" in bite.proof


def test_unread_records_need_a_node_that_can_be_stopped() -> None:
    assert Kill().needs is Killable
    assert Kill(unread=1).needs is PausableAndKillable
    assert isinstance(ProcessNode("broker-1"), Kill(unread=1).needs)
    assert not isinstance(FakeNode("broker-1"), Kill(unread=1).needs)
    assert isinstance(FakeNode("broker-1"), Kill().needs)
    with pytest.raises(UsageError, match="unread"):
        Kill(unread=-1)


def test_a_kill_can_be_made_from_its_description() -> None:
    for fault in (Kill(), Kill(unread=300)):
        assert fault_of(fault.describe()) == fault
    assert str(Kill(unread=300)) == str(Kill())
