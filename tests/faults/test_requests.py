"""Holding requests: the power of a broker with a real proxy process, and the fault on brokers in memory."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from faults.hold_requests import API_KEYS, HoldRequests
from harness import registry
from harness.clusters.base.options import PLAIN
from harness.clusters.links.mesh import Mesh, Port, members
from harness.clusters.powers.held_requests import Holding
from harness.clusters.processes.kafka_process import KafkaProcess
from harness.contracts import HeldRequests, Lane, Link, Node, RequestHolding
from harness.errors import FaultError, UsageError
from harness.machine import loopback_block
from harness.processes import child_process
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from tests.clusters.links.test_request_holder import END_TXN, METADATA, request
from tests.fake_arena import IMPATIENT, FakeArena, FakeNode, make_arena

# --- the power, with a real holder process ---------------------------------------------------------


class FakeLinks:
    """Remembers the upstream of each lane."""

    def __init__(self) -> None:
        self.leads: dict[Link, str] = {}

    def retarget(self, link: Link, upstream: str | None) -> None:
        if upstream is None:
            self.leads.pop(link, None)
        else:
            self.leads[link] = upstream

    def retargeted(self) -> dict[Link, str]:
        return self.leads


class HoldingProcess(Holding, KafkaProcess):
    """A server that is never started."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Holding]:
    block = loopback_block.take(Port)
    mesh = Mesh(block.number, members(1, 1, combined=True))
    member = mesh.members[0]
    links = cast(Any, FakeLinks())
    node = HoldingProcess(member, mesh.address(member), links, tmp_path, PLAIN, cast(Any, None))
    yield node
    node.closed()
    block.release()
    assert node.residue() == []


@pytest.fixture
def produce_listener(broker: Holding) -> Iterator[socket.socket]:
    with socket.create_server((broker.address, int(Port.PRODUCE))) as server:
        server.settimeout(10)
        yield server


def test_the_lane_passes_through_a_holder_only_while_requests_are_held(
    broker: Holding, produce_listener: socket.socket
) -> None:
    broker.release_requests()  # idempotent, also when nothing was ever held
    broker.hold_requests(HeldRequests((END_TXN,)))
    link = Link("produce", "broker-1")
    assert broker.links_of_cluster.retargeted() == {link: f"{broker.address}:{Port.HOLDER:d}"}
    assert broker.residue() == ["a holder of requests runs at broker-1"]
    with pytest.raises(FaultError, match="held already, on produce->broker-1"):
        broker.hold_requests(HeldRequests((END_TXN,)))
    with socket.create_connection((broker.address, int(Port.HOLDER))) as sender:
        sender.sendall(request(METADATA, 1) + request(END_TXN, 2))
        connection, _ = produce_listener.accept()
        assert connection.recv(1000) == request(METADATA, 1)
        wait_until(lambda: broker.held_requests()["requests"] == 1, 10.0, "not held")
    wait_until(lambda: broker.held_requests()["senders_gone"], 10.0, "the sender is still there")

    def answer_late() -> None:
        assert connection.recv(1000) == request(END_TXN, 2)
        connection.sendall(struct.pack(">ii", 4, 2))

    with connection, ThreadPoolExecutor() as pool:
        late = pool.submit(answer_late)
        broker.release_requests()
        late.result()
    counts = broker.held_requests()
    assert (counts["requests"], counts["delivered"], counts["answered"], counts["inserted"]) == (0, 1, 1, 0)
    assert broker.residue() == []
    assert not list(broker.folder.glob("*.pid"))


def test_when_the_holder_dies_the_lane_opens_and_release_raises(broker: Holding) -> None:
    broker.hold_requests(HeldRequests((END_TXN,)))
    assert broker._holder is not None
    child_process.end(broker._holder)
    with pytest.raises(FaultError, match="the holder of requests at broker-1 does not answer release"):
        broker.release_requests()
    assert broker.links_of_cluster.retargeted() == {}
    broker.hold_requests(HeldRequests((END_TXN,)))
    broker.release_requests()


def test_the_control_lane_has_no_proxy(broker: Holding) -> None:
    with pytest.raises(FaultError, match="control lane"):
        broker.hold_requests(HeldRequests((END_TXN,), Lane.CONTROL))


# --- the fault ------------------------------------------------------------------------------------


class Gate(FakeNode):
    """A broker that gets `load` requests as soon as requests are held."""

    load = 3
    gets_stuck = False
    state: Mapping[str, int] = {}

    def hold_requests(self, how: HeldRequests) -> None:
        self.calls.append(f"hold {how.api_keys} {how.lane} {how.connections}")
        self.state = {
            "connections_so_far": 1,
            "requests_so_far": self.load,
            "requests": self.load,
            "inserted": 1,
        }
        self.state = {**self.state, "passed": 5}

    def release_requests(self) -> None:
        self.calls.append("release")
        if not self.gets_stuck:
            self.state = {**self.state, "requests": 0, "delivered": self.load, "inserted": 0}

    def held_requests(self) -> Mapping[str, int]:
        return self.state


@pytest.fixture
def arena() -> FakeArena:
    arena = make_arena()
    arena.cluster.brokers = [Gate(broker.name, broker.peers) for broker in arena.cluster.brokers]
    return arena


def gate(arena: FakeArena) -> Gate:
    broker = arena.cluster.brokers[0]
    assert isinstance(broker, Gate)
    assert isinstance(broker, RequestHolding)
    return broker


def test_passes_the_check_of_its_contract(arena: FakeArena) -> None:
    checked = check_fault(HoldRequests(), arena, [gate(arena)])
    assert checked.bite.proof == "requests held from EndTxn on: 3 to broker-1 on 1 connection(s)"
    assert checked.healing.measured["delivered"] == 3
    assert gate(arena).calls[:2] == ["hold (26,) produce 1", "release"]


def test_no_bite_when_no_such_request_comes(arena: FakeArena) -> None:
    gate(arena).load = 0
    with HoldRequests(within_s=0.1).hold(arena, [gate(arena)]) as bite:
        assert not bite.bit
        assert bite.proof == "no EndTxn within 0.1 s; 5 other requests passed"
    with HoldRequests().hold(arena, []) as bite:
        assert not bite.bit


def test_no_healing_while_something_is_held(arena: FakeArena) -> None:
    arena.patience = IMPATIENT
    gate(arena).gets_stuck = True
    with HoldRequests().hold(arena, [gate(arena)]):
        pass
    healing = HoldRequests().healed(arena, [gate(arena)])
    assert not healing.healed
    assert "3 requests are still held" in healing.proof
    gate(arena).state = {"requests_so_far": 3, "delivered": 2}
    assert "3 requests were held, 2 delivered" in HoldRequests().healed(arena, [gate(arena)]).proof
    gate(arena).state = {"inserted": 1}
    assert "still leads through the proxy" in HoldRequests().healed(arena, [gate(arena)]).proof


def test_is_a_value_with_a_name_and_can_be_made_again() -> None:
    fault = HoldRequests(("TxnOffsetCommit", 8), Lane.CONSUME, 2)
    assert str(fault) == "hold_requests-TxnOffsetCommit-OffsetCommit"
    assert fault.how == HeldRequests((28, 8), Lane.CONSUME, 2)
    assert fault_of(json.loads(json.dumps(fault.describe()))) == fault
    assert str(registry.load("fault", "hold_requests")()) == "hold_requests-EndTxn"
    assert len(set(API_KEYS.values())) == len(API_KEYS)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"api_keys": ("EndTx",)}, r"unknown kind 'EndTx'; choose from .*EndTxn"),
        ({"api_keys": ()}, "api_keys is empty"),
        ({"api_keys": (-4,)}, "api key -4"),
        ({"lane": Lane.CONTROL}, "choose produce or consume"),
        ({"connections": 0}, "connections must be at least 1"),
    ],
)
def test_bad_settings_are_named(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        HoldRequests(**wrong)


def test_a_node_without_the_power_is_refused(arena: FakeArena) -> None:
    nodes: list[Node] = [FakeNode("bare")]
    assert not isinstance(nodes[0], HoldRequests.needs)
    with pytest.raises(FaultError, match="bare"), HoldRequests().hold(arena, nodes):
        pass
