"""Kill, restart, rolling restart, pause and starve on nodes in memory, and their powers on real processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from faults.kill import Kill
from faults.pause import Pause
from faults.restart import Restart
from faults.rolling_restart import RollingRestart
from faults.starve import Starve
from harness import registry
from harness.clusters.base.load import ask_for_more
from harness.clusters.powers.cpu import Throttle, cpu_seconds
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
from harness.errors import FaultError, UsageError, WaitTimeout
from harness.machine import cgroup
from harness.machine.cgroup import Place, sweep_groups
from harness.machine.cgroup_cpu import CpuGroup, place_for
from harness.processes import child_process
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from tests.fake_arena import IMPATIENT, FakeArena, FakeCluster, FakeNode, make_arena

FAULTS: list[Fault] = [Kill(), Restart(), RollingRestart(), Pause(), Starve()]


@dataclass
class ProcessNode(FakeNode):
    """A node that can be stopped cleanly, paused and starved; with `hangs` it does not end on SIGTERM."""

    hangs: bool = False
    stopped: bool = False
    share: float = 1.0

    def shut_down(self, limit_s: float = 60.0) -> int:
        self.calls.append("shut_down")
        if self.hangs:
            raise WaitTimeout(f"{self.name} did not end after SIGTERM")
        self.alive = self.stubborn
        return 143

    def pause(self) -> None:
        self.calls.append("pause")
        self.stopped = not self.stubborn

    def resume(self) -> None:
        self.calls.append("resume")
        self.stopped = False

    def paused(self) -> bool:
        return self.stopped

    def starve(self, cpu_share: float) -> str:
        self.calls.append("starve")
        self.share = 1.0 if self.stubborn else cpu_share
        return "signals"

    def feed(self) -> None:
        self.calls.append("feed")
        self.share = 1.0

    def cpu_under_load(self, for_s: float) -> float:
        return self.share

    def reachable(self) -> bool:
        return super().reachable() and not self.stopped


def arena_of_processes(patience: float = 1.0) -> tuple[FakeArena, list[ProcessNode]]:
    plain = make_arena()
    nodes = [ProcessNode(node.name, node.peers) for node in plain.cluster.brokers]
    cluster = FakeCluster(list(nodes), plain.cluster.replicas)
    return FakeArena(cluster, plain.workers, patience=patience), nodes


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


# Real processes.


@pytest.fixture
def burning(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = child_process.spawn([sys.executable, "-c", "while True: pass"], log=tmp_path / "log")
    yield process
    child_process.end(process)


def used_per_s(pid: int, for_s: float = 1.0) -> float:
    begun, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(for_s)
    return (cpu_seconds(pid) - before) / (time.monotonic() - begun)


def test_signals_leave_a_process_its_share(burning: subprocess.Popen[bytes]) -> None:
    throttle = Throttle(
        burning.pid,
        0.1,
        stop=lambda: burning.send_signal(signal.SIGSTOP),
        go_on=lambda: burning.send_signal(signal.SIGCONT),
    )
    little = used_per_s(burning.pid, 3.0)
    throttle.end()
    assert little <= 0.15
    assert not child_process.is_stopped(burning.pid), "it is left running"
    assert used_per_s(burning.pid) > little


def test_a_throttle_ends_with_its_process(burning: subprocess.Popen[bytes]) -> None:
    throttle = Throttle(burning.pid, 0.5, stop=lambda: None, go_on=lambda: None)
    child_process.end(burning)
    wait_until(lambda: not throttle._thread.is_alive(), 5.0, "the thread goes on")
    with pytest.raises(OSError, match=r".+"):
        cpu_seconds(burning.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="making a control group needs root")
def test_a_control_group_leaves_a_process_its_share(burning: subprocess.Popen[bytes]) -> None:
    place = place_for(burning.pid)
    if place is None:
        pytest.skip("this kernel has no control group with a CPU limit")
    group = CpuGroup.make(place, 0.1)
    try:
        group.take(burning.pid)
        little = used_per_s(burning.pid, 3.0)
        assert sweep_groups() == [], "the group of a running harness is left alone"
    finally:
        group.remove()
    assert little <= 0.15
    assert not group.folder.exists()
    # A process that was throttled when it left the group may have to wait for a moment.
    wait_until(
        lambda: used_per_s(burning.pid) > little, 10.0, "it gets no more than its share without the group"
    )
    assert burning.poll() is None
    group.remove()  # idempotent


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose files are made by the test."""
    monkeypatch.setattr(cgroup, "_MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cgroup, "_PROCESSES", tmp_path / "proc")
    (tmp_path / "proc" / "7").mkdir(parents=True)
    return tmp_path


def test_groups_are_made_where_the_controller_is_delegated(machine: Path) -> None:
    one, two = machine / "one", machine / "two"
    membership = machine / "proc" / "7" / "cgroup"
    (machine / "mounts").write_text(f"cgroup {one} cgroup rw,cpu,cpuacct 0 0\ncgroup2 {two} cgroup2 rw 0 0\n")
    membership.write_text("4:memory:/deep/group\n1:cpu,cpuacct:/a\n0::/b/c\n")
    assert place_for(7) == Place(one / "a", one / "a", 1)
    membership.write_text("0::/b/c\n")
    assert place_for(7) is None, "no parent group delegates the CPU there"
    (two / "b").mkdir(parents=True)
    (two / "b" / "cgroup.subtree_control").write_text("memory cpu\n")
    assert place_for(7) == Place(two / "b", two / "b" / "c", 2)
    (machine / "mounts").write_text("tmpfs /tmp tmpfs rw 0 0\n")
    assert place_for(7) is None


def test_limits_are_written_in_the_format_of_each_version(machine: Path) -> None:
    first = CpuGroup.make(Place(machine, machine, 1), 0.25)
    assert (first.folder / "cpu.cfs_quota_us").read_text() == "25000\n"
    assert (first.folder / "cpu.cfs_period_us").read_text() == "100000\n"
    second = CpuGroup.make(Place(machine, machine, 2), 0.25)
    assert (second.folder / "cpu.max").read_text() == "25000 100000\n"


def test_groups_of_ended_harnesses_are_swept(machine: Path) -> None:
    top = machine / "groups"
    (machine / "mounts").write_text(f"cgroup {top} cgroup rw,cpu 0 0\n")
    own = child_process.identify(os.getpid())
    assert own is not None
    dead = top / "below" / f"onceproof-{own.pid}-{own.start_ticks - 1}-{own.pid_namespace}-ab12"
    alive = top / f"onceproof-{own.pid}-{own.start_ticks}-{own.pid_namespace}-ab12"
    in_a_container = (
        top / f"onceproof-{own.pid}-{own.start_ticks - 1}-{own.pid_namespace + 1}-ab12"
    )  # TRUST D1
    foreign = top / "onceproof-of-somebody"
    for folder in (dead, alive, in_a_container, foreign):
        folder.mkdir(parents=True)
    assert sweep_groups() == [dead]
    assert [f.exists() for f in (dead, alive, in_a_container, foreign)] == [False, True, True, True]


def test_a_group_that_is_still_in_use_is_waited_for(machine: Path) -> None:
    top = machine / "groups"
    (machine / "mounts").write_text(f"cgroup {top} cgroup rw,memory 0 0\n")
    own = child_process.identify(os.getpid())
    assert own is not None
    held = top / f"onceproof-{own.pid}-{own.start_ticks - 1}-{own.pid_namespace}-ab12"
    dying = (
        held / "of-a-dying-process"
    )  # a folder that is not empty cannot be removed, like a group with a process in it
    dying.mkdir(parents=True)
    leaves = threading.Timer(0.3, dying.rmdir)
    leaves.start()
    assert sweep_groups() == [held]
    leaves.join()
    assert not held.exists()


def test_the_load_ends_in_time_and_raises_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        ask_for_more(server.getsockname(), 0.5)  # never answered, as by a stopped process
        assert 0.4 <= time.monotonic() - begun < 5
        asked = server.accept()[0].recv(1 << 16)
        assert asked.count(b"onceproof-wire") > 10
        address = server.getsockname()
    with pytest.raises(FaultError, match="takes no load"):
        ask_for_more(address, 0.5)


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
