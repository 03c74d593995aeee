"""A small raw ZooKeeper client: requests to one chosen server over a plain socket, with a time limit.

It uses three ports: the client port with four-letter words and sessions, the election port, and the port on which servers
follow a leader. On the last two it poses as a server without a vote, which changes nothing.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import struct
import time
from dataclasses import dataclass

from harness.kafka.protocol.raw_client import Address, ClosedError, UnansweredError, WireError

# Session timeout: the ensemble ends a session that was silent for as long.
_SESSION_MS = 3000
_CREATE2, _EXISTS, _GET_DATA = 15, 3, 4
_NO_NODE = -101
_EPHEMERAL = 1
_ANYONE = struct.pack(">ii", 1, 31)  # one entry with all permissions
_CONFIG = "/zookeeper/config"  # always exists, and is long enough for measuring throughput
_ELECTION_PROTOCOL = -65536
_LOOKING, _OBSERVERINFO, _LEADERINFO, _LEARNER_PROTOCOL = 0, 16, 17, 0x10000
# Ids of servers outside the ensemble; each connection has its own, since a second one with the same id ends the first.
_STRANGERS = itertools.count(1_000_000 + os.getpid() * 1000)
ARE_YOU_OK = b"ruok"
NONSENSE = b"\xff" * 24  # invalid on all three ports: no length, protocol or packet begins like this


class MuteError(ClosedError):
    """The server closed the connection without an answer: no server is there, or its answer was lost."""


@dataclass(frozen=True)
class ServerStanding:
    """The state that a server reports of itself."""

    mode: str  # leader, follower; empty: it does not serve at the moment
    epoch: int  # of the leader under which its last change was made; -1: not reported


def standing(address: Address, timeout_s: float) -> ServerStanding:
    return parse_standing(four_letters(address, "srvr", timeout_s))


def parse_standing(text: str) -> ServerStanding:
    mode = re.search(r"^Mode: (\w+)", text, re.MULTILINE)
    zxid = re.search(r"^Zxid: 0x([0-9a-f]+)", text, re.MULTILINE)
    return ServerStanding(mode[1] if mode else "", int(zxid[1], 16) >> 32 if zxid else -1)


def are_you_ok(address: Address, timeout_s: float) -> None:
    """Send the cheapest request, which works without a quorum too; raise WireError if no answer comes."""
    four_letters(address, ARE_YOU_OK.decode(), timeout_s)


def four_letters(address: Address, word: str, timeout_s: float) -> str:
    """Return the answer to a four-letter word that the server allows; the server closes the connection after it."""
    with _Connection(address, timeout_s) as connection:
        connection.send(word.encode())
        answer = connection.receive_all()
    if not answer:
        raise MuteError(f"{connection.place} cannot be reached: it closed without an answer to {word}")
    return answer.decode(errors="replace")


def ask_vote(address: Address, timeout_s: float) -> None:
    """Ask for the current vote on the election port, as a server without a vote; it is answered at once."""
    with _Connection(address, timeout_s) as connection:
        connection.send(vote_hello() + vote_question())
        connection.receive_frame()


def ask_to_follow(address: Address, timeout_s: float) -> None:
    """Ask for the epoch on the port of a leader, as an observer. Only a leader listens there."""
    with _Connection(address, timeout_s) as connection:
        connection.send(follow_question())
        (kind,) = struct.unpack(">i", connection.receive(4))
    if kind != _LEADERINFO:
        raise WireError(f"{connection.place} answered an observer with {kind}, not with its epoch")


def follow_question() -> bytes:
    info = struct.pack(">qiq", next(_STRANGERS), _LEARNER_PROTOCOL, 0)
    return struct.pack(">iqi", _OBSERVERINFO, 0, len(info)) + info + struct.pack(">i", -1)


def vote_hello() -> bytes:
    """Return the first message of an election connection: the server's id and address."""
    where = b"localhost:1"
    return struct.pack(">qqi", _ELECTION_PROTOCOL, next(_STRANGERS), len(where)) + where


def vote_question(padding: int = 0) -> bytes:
    """Return a vote for no server. ZooKeeper ignores the bytes after the epoch if they have no version."""
    vote = struct.pack(">iqqq", _LOOKING, -1, -1, 0) + bytes(padding and padding + 24)
    return struct.pack(">i", len(vote)) + vote


def session_hello() -> bytes:
    """Return the first message of a client: a request for a new session, answered by one frame."""
    body = struct.pack(">iqiqi", 0, 0, _SESSION_MS, 0, 16) + bytes(16) + b"\0"
    return struct.pack(">i", len(body)) + body


def session_question(padding: int = 0) -> bytes:
    """Return a request for the members of the ensemble, answered from memory; the padding is not read."""
    return _request(_GET_DATA, _text(_CONFIG) + b"\0" + bytes(padding))


def exists(address: Address, path: str, timeout_s: float) -> bool:
    """Return True if the node exists, as this server knows."""
    error, _answer = _in_session(address, _request(_EXISTS, _text(path) + b"\0"), timeout_s)
    if error not in (0, _NO_NODE):
        raise WireError(f"{address[0]}:{address[1]} did not answer whether {path} exists: error {error}")
    return error == 0


def leader_time_ms(address: Address, timeout_s: float) -> int:
    """Return the wall clock of the leader, by the creation time of an ephemeral node: the leader stamps every change."""
    path = f"/onceproof-clock-{next(_STRANGERS)}"
    access = _ANYONE + _text("world") + _text("anyone")
    body = _text(path) + struct.pack(">i", 0) + access + struct.pack(">i", _EPHEMERAL)
    error, answer = _in_session(address, _request(_CREATE2, body), timeout_s)
    if error:
        raise WireError(f"{address[0]}:{address[1]} did not create {path}: error {error}")
    (size,) = struct.unpack_from(">i", answer)
    _made, _changed, created_ms = struct.unpack_from(">qqq", answer, 4 + size)
    return int(created_ms)


def _in_session(address: Address, request: bytes, timeout_s: float) -> tuple[int, bytes]:
    """Send one request in a new session, which is closed after it; return the error and the answer."""
    with _Connection(address, timeout_s) as connection:
        connection.send(session_hello() + request + _request(-11, b""))
        connection.receive_frame()
        answer = connection.receive_frame()
        _xid, _zxid, error = struct.unpack_from(">iqi", answer)
        return error, answer[16:]


def _request(kind: int, body: bytes) -> bytes:
    message = struct.pack(">ii", 1, kind) + body
    return struct.pack(">i", len(message)) + message


def _text(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode("ascii")


class _Connection:
    """A socket with one time limit for all calls; it raises the errors of harness.kafka.protocol.raw_client."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self.place = f"{address[0]}:{address[1]}"
        self._address, self._timeout_s = address, timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._socket: socket.socket | None = None

    def __enter__(self) -> _Connection:
        try:
            self._socket = socket.create_connection(
                (self._address[0], int(self._address[1])), timeout=self._timeout_s
            )
        except OSError as error:
            self._raise(error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def send(self, data: bytes) -> None:
        try:
            self._ready().sendall(data)
        except OSError as error:
            self._raise(error)

    def receive(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._receive(size - len(parts))
            if not part:
                raise ClosedError(f"{self.place} cannot be reached: closed before the answer was complete")
            parts += part
        return parts

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive(4))
        return self.receive(size)

    def receive_all(self) -> bytes:
        parts = b""
        while part := self._receive(65536):
            parts += part
        return parts

    def _receive(self, size: int) -> bytes:
        try:
            return self._ready().recv(size)
        except OSError as error:
            self._raise(error)
            raise

    def _ready(self) -> socket.socket:
        assert self._socket is not None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket

    def _raise(self, error: OSError) -> None:
        if isinstance(error, TimeoutError):
            raise UnansweredError(f"{self.place} did not answer within {self._timeout_s:g} s") from None
        raise ClosedError(f"{self.place} cannot be reached: {error}") from error
