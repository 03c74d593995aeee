"""More requests than a server can serve, for probes of its share of CPU time and memory."""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from contextlib import suppress

from harness.clusters.links.dialects import KAFKA, Speech
from harness.errors import FaultError
from harness.kafka.protocol import raw_client

_CONNECTIONS = 4
_PIPELINED = 500


def ask_for_more(address: raw_client.Address, for_s: float, speech: Speech = KAFKA) -> None:
    """Send cheap requests without a pause on several connections: far more work for a server than for the harness."""
    block = memoryview(speech.question(0) * _PIPELINED)
    deadline = time.monotonic() + for_s
    with selectors.DefaultSelector() as ready:
        connections: list[socket.socket] = []
        try:
            for _ in range(_CONNECTIONS):
                connections.append(raw_client.connect(address, 10.0))
                connections[-1].sendall(speech.hello())
                connections[-1].setblocking(False)
                ready.register(connections[-1], selectors.EVENT_READ | selectors.EVENT_WRITE, [0])
            while (left := deadline - time.monotonic()) > 0:
                for key, events in ready.select(left):
                    with suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                        _exchange(key.fileobj, key.data, events, block)
        except OSError as error:
            raise FaultError(f"{address[0]}:{address[1]} takes no load: {error}") from error
        finally:
            for connection in connections:
                connection.close()


def _exchange(connection: object, sent: list[int], events: int, block: memoryview) -> None:
    assert isinstance(connection, socket.socket)
    if events & selectors.EVENT_READ and not connection.recv(1 << 18):
        raise ConnectionResetError("closed")
    if events & selectors.EVENT_WRITE:
        sent[0] = (sent[0] + connection.send(block[sent[0] :])) % len(block)
