"""A tiny raw ZooKeeper client: questions to one chosen server over a plain socket, with a limit (as in harness.kafka.protocol.raw_client).

Three ports are spoken to. Clients: four letter words, and sessions. Other servers of the ensemble: the port on which they
vote, and the one on which they follow a leader; there we are a server without a vote, which changes nothing.
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

# Asked for by sessions; the ensemble ends them when nothing was heard for as long.
_SESSION_MS = 3000
_CREATE2, _EXISTS, _GET_DATA = 15, 3, 4
_NO_NODE = -101
_EPHEMERAL = 1
_ANYONE = struct.pack(">ii", 1, 31)  # one entry with all permissions
_CONFIG = "/zookeeper/config"  # always there, and long enough to be worth a measurement of bytes
_ELECTION_PROTOCOL = -65536
_LOOKING, _OBSERVERINFO, _LEADERINFO, _LEARNER_PROTOCOL = 0, 16, 17, 0x10000
# Ids of servers that are in no ensemble; each connection has its own, as a second one with the same ends the first.
_STRANGERS = itertools.count(1_000_000 + os.getpid() * 1000)
ARE_YOU_OK = b"ruok"
NONSENSE = b"\xff" * 24  # on any of the ports: no length, no protocol and no packet begins like this


class MuteError(ClosedError):
    """Closed in order without a word: nobody is there, or the answer was lost, after which a server closes."""


@dataclass(frozen=True)
class ServerStanding:
    """What a server says about itself."""

    mode: str  # leader, follower; empty: it serves nobody for the moment
    epoch: int  # of the leader under which its last change was made; -1: not told


def standing(address: Address, timeout_s: float) -> ServerStanding:
    return parse_standing(four_letters(address, "srvr", timeout_s))


def parse_standing(text: str) -> ServerStanding:
    mode = re.search(r"^Mode: (\w+)", text, re.MULTILINE)
    zxid = re.search(r"^Zxid: 0x([0-9a-f]+)", text, re.MULTILINE)
    return ServerStanding(mode[1] if mode else "", int(zxid[1], 16) >> 32 if zxid else -1)


def are_you_ok(address: Address, timeout_s: float) -> None:
    """The cheapest question, also without a quorum; raises WireError when no answer comes."""
    four_letters(address, ARE_YOU_OK.decode(), timeout_s)


def four_letters(address: Address, word: str, timeout_s: float) -> str:
    """The answer to one of the words that the server was told to allow; the server closes after it."""
    with _Connection(address, timeout_s) as connection:
        connection.send(word.encode())
        answer = connection.receive_all()
    if not answer:
        raise MuteError(f"{connection.place} is not there: it closed without an answer to {word}")
    return answer.decode(errors="replace")


def ask_vote(address: Address, timeout_s: float) -> None:
    """On the port of elections: a server without a vote asks for the present vote, and is told at once."""
    with _Connection(address, timeout_s) as connection:
        connection.send(vote_hello() + vote_question())
        connection.receive_frame()


def ask_to_follow(address: Address, timeout_s: float) -> None:
    """On the port of a leader: an observer introduces itself and is told the epoch. Only a leader listens there."""
    with _Connection(address, timeout_s) as connection:
        connection.send(follow_question())
        (kind,) = struct.unpack(">i", connection.receive(4))
    if kind != _LEADERINFO:
        raise WireError(f"{connection.place} answered an observer with {kind}, not with its epoch")


def follow_question() -> bytes:
    info = struct.pack(">qiq", next(_STRANGERS), _LEARNER_PROTOCOL, 0)
    return struct.pack(">iqi", _OBSERVERINFO, 0, len(info)) + info + struct.pack(">i", -1)


def vote_hello() -> bytes:
    """How a server begins a connection for elections: its id and where it could be reached."""
    where = b"localhost:1"
    return struct.pack(">qqi", _ELECTION_PROTOCOL, next(_STRANGERS), len(where)) + where


def vote_question(padding: int = 0) -> bytes:
    """A vote for nobody. What follows the epoch is not read if it names no version."""
    vote = struct.pack(">iqqq", _LOOKING, -1, -1, 0) + bytes(padding and padding + 24)
    return struct.pack(">i", len(vote)) + vote


def session_hello() -> bytes:
    """How a client begins: a new session. It is answered by one frame."""
    body = struct.pack(">iqiqi", 0, 0, _SESSION_MS, 0, 16) + bytes(16) + b"\0"
    return struct.pack(">i", len(body)) + body


def session_question(padding: int = 0) -> bytes:
    """What the ensemble's members are, which any server tells from memory; bytes that follow it are not read."""
    return _request(_GET_DATA, _text(_CONFIG) + b"\0" + bytes(padding))


def exists(address: Address, path: str, timeout_s: float) -> bool:
    """Whether there is such a node, as this server knows."""
    error, _answer = _in_session(address, _request(_EXISTS, _text(path) + b"\0"), timeout_s)
    if error not in (0, _NO_NODE):
        raise WireError(f"{address[0]}:{address[1]} did not tell whether there is {path}: error {error}")
    return error == 0


def leader_time_ms(address: Address, timeout_s: float) -> int:
    """The wall clock of the leader, which stamps every change: that of a node which goes when its session ends."""
    path = f"/onceproof-clock-{next(_STRANGERS)}"
    access = _ANYONE + _text("world") + _text("anyone")
    body = _text(path) + struct.pack(">i", 0) + access + struct.pack(">i", _EPHEMERAL)
    error, answer = _in_session(address, _request(_CREATE2, body), timeout_s)
    if error:
        raise WireError(f"{address[0]}:{address[1]} did not make {path}: error {error}")
    (size,) = struct.unpack_from(">i", answer)
    _made, _changed, created_ms = struct.unpack_from(">qqq", answer, 4 + size)
    return int(created_ms)


def _in_session(address: Address, request: bytes, timeout_s: float) -> tuple[int, bytes]:
    """Error and answer of one request in a session of its own, which is ended in order."""
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
    """A socket with one limit for all that is done with it; errors are those of harness.kafka.protocol.raw_client."""

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
                raise ClosedError(f"{self.place} is not there: closed before the answer was complete")
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
        raise ClosedError(f"{self.place} is not there: {error}") from error
