"""A proxy that holds Kafka requests: `python -m harness.clusters.links.request_holder LISTEN UPSTREAM CONTROL`, each host:port.

A folder may follow; it only shows which cluster the process belongs to.

From the first request of a chosen kind on, everything that a connection sends is held; requests before it, other
connections and new ones pass. A release delivers the held bytes to the broker in order, even if the sender has gone.
Orders are JSON lines on its control port: {"do": "hold", "api_keys": [26], "connections": 1}, {"do": "release"} and
{"do": "state"}. Each is answered with the state, a release once everything is delivered and answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from harness.clusters.links.frames import ANSWER_HEADER, Frame, Frames

_CHUNK = 256 * 1024
_MOST_HELD_BYTES = 64 * 1024 * 1024  # of one connection: beyond that nothing more is read from the sender
_ANSWER_LIMIT_S = 5.0  # for the next answer: a produce request with acks=0 never gets one


@dataclass
class State:
    """Counts of what is held now, and of what was held so far."""

    connections: int = 0
    requests: int = 0
    connections_so_far: int = 0
    requests_so_far: int = 0
    delivered: int = 0
    answered: int = 0  # of the delivered requests
    undeliverable: int = 0  # the broker had closed the connection meanwhile
    senders_gone: int = 0  # while they were held
    passed: int = 0  # requests that were never held


@dataclass
class HoldRule:
    """The kinds of requests to hold, and the number of connections still to hold."""

    api_keys: Collection[int] = ()
    connections: int = 0

    def first_to_hold(self, begun: list[Frame]) -> int | None:
        """Return the index of the first request to hold; None if there is none."""
        if self.connections <= 0:
            return None
        return next((n for n, frame in enumerate(begun) if frame.api_key in self.api_keys), None)


class Connection:
    """A client's connection, and the connection to the broker that was opened for it."""

    def __init__(
        self,
        rule: HoldRule,
        state: State,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._rule, self._state = rule, state
        self._requests_from, self._answers_to = client
        self._answers_from, self._requests_to = broker
        self._broker_gone = False
        self._held: deque[tuple[bytes, int]] | None = (
            None  # pieces, and the number of requests that begin in each
        )
        self._unanswered: deque[int] = deque()  # correlation ids of what was held
        self._answer_came = asyncio.Event()
        self._released = asyncio.Event()

    @property
    def held(self) -> bool:
        return self._held is not None

    async def run(self) -> None:
        answers = asyncio.create_task(self._pass_answers())
        try:
            await self._pass_requests()
            if self.held:  # the sender has gone, but what it sent is still to be delivered
                self._state.senders_gone += 1
                await self._released.wait()
            self._requests_to.write_eof()
            await answers
        except OSError:
            pass  # one side has gone, and the connection with it
        finally:
            answers.cancel()
            self._requests_to.close()
            self._answers_to.close()

    async def release(self) -> None:
        """Deliver what is held, in order, and wait until the broker has answered it or stopped answering."""
        assert self._held is not None
        try:
            while self._held:
                data, requests = self._held[0]
                await self._send(data)
                self._held.popleft()
                self._state.delivered += requests
                self._state.requests -= requests
        except OSError:
            lost = sum(requests for _, requests in self._held)
            self._state.undeliverable += lost
            self._state.requests -= lost
        self._held = None
        self._state.connections -= 1
        with suppress(TimeoutError):
            # A broker handles the requests of a connection one by one: only a pause in its answers means the end.
            while self._unanswered and not self._broker_gone:
                self._answer_came.clear()
                async with asyncio.timeout(_ANSWER_LIMIT_S):
                    await self._answer_came.wait()
        self._released.set()

    async def _pass_requests(self) -> None:
        frames, rest = Frames(), b""
        while data := await _read(self._requests_from):
            data = rest + data
            begun, known = frames.split(data)
            rest = data[known:]
            await self._take(data[:known], begun)
        await self._take(rest, [])

    async def _take(self, data: bytes, begun: list[Frame]) -> None:
        if self._held is None and (first := self._rule.first_to_hold(begun)) is not None:
            await self._pass(data[: begun[first].at], first)
            data, begun = data[begun[first].at :], begun[first:]
            self._held = deque()
            self._rule.connections -= 1
            self._state.connections += 1
            self._state.connections_so_far += 1
        if self._held is None:
            await self._pass(data, len(begun))
            return
        self._held.append((data, len(begun)))
        self._unanswered.extend(frame.correlation for frame in begun)
        self._state.requests += len(begun)
        self._state.requests_so_far += len(begun)
        if sum(len(piece) for piece, _ in self._held) > _MOST_HELD_BYTES:
            await self._released.wait()

    async def _pass(self, data: bytes, requests: int) -> None:
        self._state.passed += requests
        await self._send(data)

    async def _send(self, data: bytes) -> None:
        if self._broker_gone:
            raise ConnectionResetError("the broker has closed the connection")
        self._requests_to.write(data)
        await self._requests_to.drain()

    async def _pass_answers(self) -> None:
        """Pass answers on until the broker closes. When the client has gone, they are still read, and dropped."""
        frames, rest = Frames(ANSWER_HEADER), b""
        while data := await _read(self._answers_from):
            with suppress(OSError):
                self._answers_to.write(data)
                await self._answers_to.drain()
            data = rest + data
            begun, known = frames.split(data)
            rest = data[known:]
            self._tick_off([frame.correlation for frame in begun])
        self._broker_gone = True
        self._answer_came.set()
        self._answers_to.close()

    def _tick_off(self, answered: list[int]) -> None:
        """Mark requests as answered: answers come in order, so one also proves all earlier ones."""
        for correlation in answered:
            if correlation in self._unanswered:
                while self._unanswered.popleft() != correlation:
                    pass
                self._state.answered += 1
                self._answer_came.set()


class Holder:
    def __init__(self, upstream: tuple[str, int]) -> None:
        self._upstream = upstream
        self._rule, self._state = HoldRule(), State()
        self._connections: set[Connection] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker = await asyncio.open_connection(*self._upstream, limit=_CHUNK)
        except OSError:
            writer.close()
            return
        connection = Connection(self._rule, self._state, (reader, writer), broker)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            state = await self.obey(json.loads(line))
            writer.write(json.dumps(state).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def obey(self, order: dict[str, Any]) -> dict[str, int]:
        if order["do"] == "hold":
            self._rule.api_keys, self._rule.connections = frozenset(order["api_keys"]), order["connections"]
        elif order["do"] == "release":
            self._rule.connections = 0
            await asyncio.gather(*(each.release() for each in self._connections if each.held))
        return asdict(self._state)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read the next bytes; empty when the other side has closed or gone."""
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""


async def serve(listen: tuple[str, int], upstream: tuple[str, int], control: tuple[str, int]) -> None:
    holder = Holder(upstream)
    data_server = await asyncio.start_server(holder.accept, *listen, limit=_CHUNK)
    control_server = await asyncio.start_server(holder.control, *control)
    async with data_server, control_server:
        await asyncio.gather(data_server.serve_forever(), control_server.serve_forever())


def _address(text: str) -> tuple[str, int]:
    host, port = text.rsplit(":", 1)
    return host, int(port)


if __name__ == "__main__":
    asyncio.run(serve(*(_address(text) for text in sys.argv[1:4])))
