"""The proxy that holds requests: the frames of a stream, and the proxy before a server that answers frames."""

from __future__ import annotations

import asyncio
import itertools
import json
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clusters.links import request_holder
from harness.clusters.links.frames import ANSWER_HEADER, Frames

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


@settings(deadline=None)
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
def test_a_stream_that_is_not_kafka_passes_unchanged(nonsense: bytes) -> None:
    assert Frames().split(nonsense) == ([], len(nonsense))


# --- the proxy ------------------------------------------------------------------------------------


@dataclass
class Bench:
    """A server that records requests and answers each, a holder before it, and both ends of its control port."""

    holder: request_holder.Holder
    port: int
    received: list[tuple[int, int]] = field(default_factory=list)  # api key and correlation id
    stream: dict[int, bytes] = field(default_factory=dict)  # what came on each connection
    open_at_server: set[asyncio.StreamWriter] = field(default_factory=set)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(LOOPBACK, self.port)

    async def send(self, **order: Any) -> dict[str, int]:
        return await self.holder.obey(json.loads(json.dumps(order)))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)

    async def state(self) -> dict[str, int]:
        return await self.send(do="state")


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
        holder = request_holder.Holder((LOOPBACK, server.sockets[0].getsockname()[1]))
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
        await bench.send(do="hold", api_keys=[END_TXN], connections=1)
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
        state = await bench.send(do="release")
        assert [await answer(reader), await answer(reader)] == [2, 3], "the sender gets its answers, late"
        assert bench.received[3:] == [(END_TXN, 2), (METADATA, 3)]
        counts = {name: state[name] for name in ("connections", "requests", "delivered", "answered")}
        assert counts == {"connections": 0, "requests": 0, "delivered": 2, "answered": 2}
        writer.write(request(END_TXN, 4))
        assert await answer(reader) == 4, "after the release the connection passes requests again"

    on_bench(test)


def test_held_requests_are_delivered_although_the_sender_has_gone() -> None:
    async def test(bench: Bench) -> None:
        await bench.send(do="hold", api_keys=[END_TXN], connections=1)
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
        state = await bench.send(do="release")
        assert bench.received == [(METADATA, 1), (END_TXN, 2), (PRODUCE, 3)]
        assert (state["delivered"], state["answered"], state["undeliverable"]) == (2, 2, 0)
        assert state["senders_gone"] == 1
        await bench.until(lambda: not bench.open_at_server)

    on_bench(test)


def test_the_number_of_held_connections_has_a_limit() -> None:
    async def test(bench: Bench) -> None:
        await bench.send(do="hold", api_keys=[END_TXN, PRODUCE], connections=2)
        connections = [await bench.connect() for _ in range(3)]
        for number, (_, writer) in enumerate(connections):
            writer.write(request((END_TXN, PRODUCE, END_TXN)[number], number))
            await asyncio.sleep(0.05)
        assert await answer(connections[2][0]) == 2
        assert (await bench.state())["connections_so_far"] == 2
        await bench.send(do="release")
        assert sorted(bench.received) == [(PRODUCE, 1), (END_TXN, 0), (END_TXN, 2)]

    on_bench(test)


def test_requests_to_a_broker_that_closed_count_as_undeliverable() -> None:
    async def test(bench: Bench) -> None:
        await bench.send(do="hold", api_keys=[END_TXN], connections=1)
        reader, writer = await bench.connect()
        writer.write(request(END_TXN, 1))
        while not (await bench.state())["requests"]:
            await asyncio.sleep(0.005)
        for server_side in bench.open_at_server:
            server_side.close()
        assert await reader.read() == b"", "the client sees the end, as it would without the proxy"
        state = await bench.send(do="release")
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
        await bench.send(do="hold", api_keys=[END_TXN], connections=1)
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
        state = await bench.send(do="release")
        await bench.until(lambda: len(bench.received) == len(kinds))
        assert bench.stream[0] == stream
        assert (state["delivered"], state["answered"]) == (held, held)
        if not leaves:
            assert [await answer(reader) for _ in kinds] == list(range(len(kinds)))

    on_bench(test)
