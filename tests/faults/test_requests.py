"""Holding requests: the frames of a stream, the proxy against a server that answers frames, the fault."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults import _measure
from faults.hold_requests import API_KEYS, HoldRequests
from harness import registry, tether
from harness.clusters import _block, _holder
from harness.clusters._frames import ANSWER_HEADER, Frames
from harness.clusters._holding import Holding
from harness.clusters._mesh import Mesh, Port, members
from harness.clusters._server import PLAIN
from harness.contracts import HeldRequests, Lane, Link, Node, RequestHolding
from harness.errors import FaultError, UsageError
from harness.schedule import fault_of
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from tests.fake_arena import FakeArena, FakeNode, make_arena

END_TXN, PRODUCE, METADATA = 26, 0, 3
LOOPBACK = "127.0.0.1"


def request(key: int, correlation: int, body: bytes = b"") -> bytes:
    head = struct.pack(">hhi", key, 0, correlation)
    return struct.pack(">i", len(head) + len(body)) + head + body


# --- frames ---------------------------------------------------------------------------------------

requests = st.lists(st.tuples(st.integers(0, 90), st.binary(max_size=40)), max_size=12)


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


@given(requests, st.lists(st.integers(0, 10_000), max_size=30))
def test_frames_are_found_however_the_stream_is_cut(wanted: list[tuple[int, bytes]], cuts: list[int]) -> None:
    frames, rest, found, taken = Frames(), b"", [], b""
    stream = b"".join(request(key, number, body) for number, (key, body) in enumerate(wanted))
    for piece in pieces_of(stream, cuts):
        data = rest + piece
        begun, known = frames.split(data)
        found += [(frame.api_key, frame.correlation, len(taken) + frame.at) for frame in begun]
        taken, rest = taken + data[:known], data[known:]
    begins = [sum(len(request(0, 0, body)) for _, body in wanted[:n]) for n in range(len(wanted))]
    assert found == [(key, n, begins[n]) for n, (key, _) in enumerate(wanted)]
    assert (taken, rest) == (stream, b"")


def test_answers_have_no_api_key() -> None:
    begun, known = Frames(ANSWER_HEADER).split(struct.pack(">ii", 6, 77) + b"xx")
    assert [(frame.api_key, frame.correlation) for frame in begun] == [(-1, 77)]
    assert known == 10


@pytest.mark.parametrize("nonsense", [b"\xff\xff\xff\xff", b"\0\0\0\x01rest"])
def test_what_is_no_kafka_passes_as_it_is(nonsense: bytes) -> None:
    assert Frames().split(nonsense) == ([], len(nonsense))


# --- the proxy ------------------------------------------------------------------------------------


@dataclass
class Bench:
    """A server that records requests and answers each, a holder before it, and both ends of its control port."""

    holder: _holder.Holder
    port: int
    received: list[tuple[int, int]] = field(default_factory=list)  # api key and correlation id
    stream: dict[int, bytes] = field(default_factory=dict)  # what came on each connection
    open_at_server: set[asyncio.StreamWriter] = field(default_factory=set)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(LOOPBACK, self.port)

    async def tell(self, **order: Any) -> dict[str, int]:
        return await self.holder.obey(json.loads(json.dumps(order)))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)

    async def state(self) -> dict[str, int]:
        return await self.tell(do="state")


def on_bench(test: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        bench: Bench

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            number = len(bench.stream)
            bench.stream[number] = b""
            bench.open_at_server.add(writer)
            with suppress(asyncio.IncompleteReadError, OSError):
                while True:
                    head = await reader.readexactly(4)
                    body = await reader.readexactly(struct.unpack(">i", head)[0])
                    bench.stream[number] += head + body
                    key, _, correlation = struct.unpack_from(">hhi", body)
                    bench.received.append((key, correlation))
                    writer.write(struct.pack(">ii", 4, correlation))
                    await writer.drain()
            bench.open_at_server.discard(writer)
            writer.close()

        server = await asyncio.start_server(serve, LOOPBACK, 0)
        holder = _holder.Holder((LOOPBACK, server.sockets[0].getsockname()[1]))
        proxy = await asyncio.start_server(holder.accept, LOOPBACK, 0)
        bench = Bench(holder, proxy.sockets[0].getsockname()[1])
        async with server, proxy:
            await test(bench)

    asyncio.run(run())


async def answer(reader: asyncio.StreamReader) -> int:
    async with asyncio.timeout(5):
        return int(struct.unpack(">ii", await reader.readexactly(8))[1])


def test_everything_passes_before_a_hold() -> None:
    async def test(bench: Bench) -> None:
        reader, writer = await bench.connect()
        writer.write(request(END_TXN, 1) + request(PRODUCE, 2, b"x" * 700_000))
        assert [await answer(reader), await answer(reader)] == [1, 2]
        state = await bench.state()
        assert (state["requests_so_far"], state["passed"]) == (0, 2)

    on_bench(test)


def test_a_connection_is_held_from_the_request_on_and_others_pass() -> None:
    async def test(bench: Bench) -> None:
        await bench.tell(do="hold", api_keys=[END_TXN], connections=1)
        reader, writer = await bench.connect()
        writer.write(request(PRODUCE, 1) + request(END_TXN, 2) + request(METADATA, 3))
        assert await answer(reader) == 1, "what came before it passes"
        await bench.until(lambda: len(bench.received) == 1)
        other_reader, other_writer = await bench.connect()
        other_writer.write(request(METADATA, 7) + request(END_TXN, 8))
        assert [await answer(other_reader), await answer(other_reader)] == [7, 8], "new connections pass"
        state = await bench.state()
        assert (state["connections"], state["requests"]) == (1, 2)
        assert bench.received == [(PRODUCE, 1), (METADATA, 7), (END_TXN, 8)]
        state = await bench.tell(do="release")
        assert [await answer(reader), await answer(reader)] == [2, 3], "the sender gets its answers, late"
        assert bench.received[3:] == [(END_TXN, 2), (METADATA, 3)]
        told = {name: state[name] for name in ("connections", "requests", "delivered", "answered")}
        assert told == {"connections": 0, "requests": 0, "delivered": 2, "answered": 2}
        writer.write(request(END_TXN, 4))
        assert await answer(reader) == 4, "after the release the connection is an ordinary one"

    on_bench(test)


def test_what_is_held_is_delivered_although_the_sender_has_gone() -> None:
    async def test(bench: Bench) -> None:
        await bench.tell(do="hold", api_keys=[END_TXN], connections=1)
        reader, writer = await bench.connect()
        writer.write(request(METADATA, 1))
        assert await answer(reader) == 1
        writer.write(request(END_TXN, 2) + request(PRODUCE, 3, b"late"))
        while (await bench.state())["requests"] < 2:
            await asyncio.sleep(0.005)
        writer.transport.abort()  # a reset, as of a process that was killed
        await asyncio.sleep(0.05)
        assert bench.received == [(METADATA, 1)]
        assert len(bench.open_at_server) == 1, "the broker does not see that the sender has gone"
        state = await bench.tell(do="release")
        assert bench.received == [(METADATA, 1), (END_TXN, 2), (PRODUCE, 3)]
        assert (state["delivered"], state["answered"], state["undeliverable"]) == (2, 2, 0)
        assert state["senders_gone"] == 1
        await bench.until(lambda: not bench.open_at_server)

    on_bench(test)


def test_the_number_of_held_connections_has_a_limit() -> None:
    async def test(bench: Bench) -> None:
        await bench.tell(do="hold", api_keys=[END_TXN, PRODUCE], connections=2)
        connections = [await bench.connect() for _ in range(3)]
        for number, (_, writer) in enumerate(connections):
            writer.write(request((END_TXN, PRODUCE, END_TXN)[number], number))
            await asyncio.sleep(0.05)
        assert await answer(connections[2][0]) == 2
        assert (await bench.state())["connections_so_far"] == 2
        await bench.tell(do="release")
        assert sorted(bench.received) == [(PRODUCE, 1), (END_TXN, 0), (END_TXN, 2)]

    on_bench(test)


def test_a_broker_that_went_away_is_told() -> None:
    async def test(bench: Bench) -> None:
        await bench.tell(do="hold", api_keys=[END_TXN], connections=1)
        reader, writer = await bench.connect()
        writer.write(request(END_TXN, 1))
        while not (await bench.state())["requests"]:
            await asyncio.sleep(0.005)
        for server_side in bench.open_at_server:
            server_side.close()
        assert await reader.read() == b"", "the client sees the end, as it would without the proxy"
        state = await bench.tell(do="release")
        assert (state["delivered"], state["undeliverable"], state["requests"]) == (0, 1, 0)

    on_bench(test)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from([END_TXN, PRODUCE, METADATA]), st.binary(max_size=60)),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.integers(0, 10_000), max_size=12),
    st.booleans(),
)
def test_order_is_kept_however_frames_are_cut(
    wanted: list[tuple[int, bytes]], cuts: list[int], leaves: bool
) -> None:
    stream = b"".join(request(key, number, body) for number, (key, body) in enumerate(wanted))
    kinds = [key for key, _ in wanted]
    before = kinds.index(END_TXN) if END_TXN in kinds else len(kinds)

    async def test(bench: Bench) -> None:
        await bench.tell(do="hold", api_keys=[END_TXN], connections=1)
        reader, writer = await bench.connect()
        for piece in pieces_of(stream, cuts):
            writer.write(piece)
            await asyncio.sleep(0.001)
        if leaves:
            writer.close()
        held = len(kinds) - before
        async with asyncio.timeout(5):
            while (await bench.state())["requests"] < held:
                await asyncio.sleep(0.001)
        await bench.until(lambda: len(bench.received) == before)
        state = await bench.tell(do="release")
        await bench.until(lambda: len(bench.received) == len(kinds))
        assert bench.stream[0] == stream
        assert (state["delivered"], state["answered"]) == (held, held)
        if not leaves:
            assert [await answer(reader) for _ in kinds] == list(range(len(kinds)))

    on_bench(test)


# --- the power, with a real holder process ---------------------------------------------------------


class FakeLinks:
    """Remembers where the lane leads."""

    def __init__(self) -> None:
        self.leads: dict[Link, str] = {}

    def retarget(self, link: Link, upstream: str | None) -> None:
        if upstream is None:
            self.leads.pop(link, None)
        else:
            self.leads[link] = upstream

    def retargeted(self) -> dict[Link, str]:
        return self.leads


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Holding]:
    block = _block.take(Port)
    mesh = Mesh(block.number, members(1, 1, combined=True))
    node = Holding(mesh.members[0], mesh, cast(Any, FakeLinks()), cast(Any, None), tmp_path, PLAIN)
    yield node
    node.closed()
    block.release()
    assert node.residue() == []


@pytest.fixture
def produce_listener(broker: Holding) -> Iterator[socket.socket]:
    with socket.create_server((broker.address, int(Port.PRODUCE))) as server:
        server.settimeout(10)
        yield server


def test_a_holder_is_in_the_way_only_while_requests_are_held(
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
    told = broker.held_requests()
    assert (told["requests"], told["delivered"], told["answered"], told["inserted"]) == (0, 1, 1, 0)
    assert broker.residue() == []
    assert not list(broker.folder.glob("*.pid"))


def test_when_the_holder_dies_the_lane_is_open_again_and_it_is_told(broker: Holding) -> None:
    broker.hold_requests(HeldRequests((END_TXN,)))
    assert broker._holder is not None
    tether.end(broker._holder)
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
    """A broker to which `load` requests come as soon as some are held."""

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


def test_no_healing_while_something_is_held(arena: FakeArena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_measure.wait_whole, "__defaults__", (0.1,))
    gate(arena).gets_stuck = True
    with HoldRequests().hold(arena, [gate(arena)]):
        pass
    healing = HoldRequests().healed(arena, [gate(arena)])
    assert not healing.healed
    assert "3 requests are held still" in healing.proof
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
    ("wrong", "told"),
    [
        ({"api_keys": ("EndTx",)}, r"unknown kind 'EndTx'; there are: .*EndTxn"),
        ({"api_keys": ()}, "api_keys is empty"),
        ({"api_keys": (-4,)}, "api key -4"),
        ({"lane": Lane.CONTROL}, "lane is produce or consume"),
        ({"connections": 0}, "connections is at least 1"),
    ],
)
def test_bad_settings_are_named(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        HoldRequests(**wrong)


def test_a_node_without_the_power_is_refused(arena: FakeArena) -> None:
    nodes: list[Node] = [FakeNode("bare")]
    assert not isinstance(nodes[0], HoldRequests.needs)
    with pytest.raises(FaultError, match="bare"), HoldRequests().hold(arena, nodes):
        pass
