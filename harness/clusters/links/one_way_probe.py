"""A probe of a link whose ends are in separate networks: in which directions do bytes pass?

It uses three connections at once, so that it takes no longer than one: a question, whose answer shows both directions;
nonsense, on which a server closes the connection, even if none of its answers arrive; and a question with a mark that cuts of
requests let pass (harness.clusters.links.packet_filter), as only an answer can show the other direction.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from harness.clusters.links.dialects import KAFKA, Speech
from harness.contracts import Direction
from harness.kafka.protocol import raw_client

# Differentiated services, an unassigned code point: Kafka sets none.
LET_PASS_DSCP = 43
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class _End(Enum):
    ANSWERED = "answered"
    CLOSED = "closed"  # after it was connected
    ABSENT = "absent"  # refused, or no route


@dataclass
class _Attempt:
    message: bytes
    dscp: int = 0
    connection: socket.socket = field(
        default_factory=lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    )
    end: _End | None = None
    sent: bool = False

    def begin(self, address: raw_client.Address) -> None:
        self.connection.setblocking(False)
        self.connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, self.dscp << 2)
        # Reset the connection, so that a server that waits for lost bytes sees the end; a normal close would be
        # delivered only after the lost bytes.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.connection.connect_ex((address[0], int(address[1])))  # an error shows when bytes are sent

    def go_on(self) -> None:
        try:
            if not self.sent:
                self.connection.send(self.message)
                self.sent = True
            else:
                self.end = _End.ANSWERED if self.connection.recv(1) else _End.CLOSED
        except BlockingIOError:
            pass
        except OSError:
            self.end = _End.CLOSED if self.sent else _End.ABSENT


def each_way(
    address: raw_client.Address, limit_s: float, speech: Speech = KAFKA, *, meant: bool = False
) -> Mapping[Direction, bool]:
    """Return, as soon as it is known, whether requests arrive there and whether answers come back.

    `meant` is whether answers are configured to come back; it is returned if a server serves one connection after the
    other, and earlier connections block it.
    """
    passes = _probe(address, limit_s, speech, meant)
    if passes is None and speech is not KAFKA:
        # A ZooKeeper server that stops leading or following closes all connections, whatever it received.
        passes = _probe(address, limit_s, speech, meant)
    return passes or dict.fromkeys((Direction.REQUESTS, Direction.ANSWERS), False)


def _probe(
    address: raw_client.Address, limit_s: float, speech: Speech, meant: bool
) -> Mapping[Direction, bool] | None:
    """Probe once; None if the connection was refused or closed at once."""
    question, marked, nonsense = (
        _Attempt(speech.opening()),
        _Attempt(speech.opening(), LET_PASS_DSCP),
        _Attempt(speech.nonsense),
    )
    # On its election port a ZooKeeper server serves one connection after the other. So the connection that it reads in
    # any case comes first.
    attempts = (marked, question, nonsense)
    deadline = time.monotonic() + limit_s
    with selectors.DefaultSelector() as ready:
        try:
            for attempt in attempts:
                attempt.begin(address)
                ready.register(attempt.connection, selectors.EVENT_WRITE, attempt)
            while (left := deadline - time.monotonic()) > 0 and question.end is None:
                for key, _events in ready.select(left):
                    key.data.go_on()
                    if key.data.end is not None:
                        ready.unregister(key.fileobj)
                    elif key.data.sent:
                        ready.modify(key.fileobj, selectors.EVENT_READ, key.data)
        finally:
            for attempt in attempts:
                attempt.connection.close()
    if question.end is _End.ANSWERED:
        return dict.fromkeys((Direction.REQUESTS, Direction.ANSWERS), True)
    if question.end is not None:
        return None
    kept_waiting = speech.one_by_one and marked.sent and marked.end is nonsense.end is None
    return {
        Direction.REQUESTS: nonsense.end is _End.CLOSED,
        Direction.ANSWERS: meant if kept_waiting else marked.end is _End.ANSWERED,
    }
