"""A probe that talks to a server through a link: questions on one connection, and how the conversation ends."""

from __future__ import annotations

import selectors
import socket
import ssl
import statistics
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from harness.clusters.links.dialects import KAFKA, Speech
from harness.contracts import Ending, Questions, Talk
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.fetch import endless_fetch
from harness.kafka.protocol.security import security_of

_FOR_TLS = 16  # TLS reads a whole header before it closes
_READ_BYTES = 256 * 1024
_LEAST_ARRIVAL_S, _MOST_ARRIVAL_S = 0.05, 0.5


def talk(address: raw_client.Address, questions: Questions, speech: Speech = KAFKA) -> Talk:
    """Ask and read in one loop, as a slow link passes neither all questions nor all answers at once."""
    begun = time.monotonic()
    try:
        connection = raw_client.connect(address, questions.limit_s)
    except TimeoutError:
        return Talk(Ending.SILENT, 0, 0, 0, time.monotonic() - begun)
    except OSError:
        return Talk(Ending.CLOSED, 0, 0, 0, time.monotonic() - begun)
    with connection, selectors.DefaultSelector() as selector:
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        return _Conversation(connection, selector, questions, speech).run()


def listens(address: raw_client.Address, limit_s: float) -> bool:
    try:
        socket.create_connection((address[0], int(address[1])), timeout=limit_s).close()
    except OSError:
        return False
    return True


def closes_on_nonsense(address: raw_client.Address, limit_s: float, speech: Speech = KAFKA) -> bool:
    """Return whether the server reads what it is sent, even if none of its answers arrive."""
    security = security_of(address)
    nonsense = speech.nonsense * (_FOR_TLS if security is not None and security.encrypted else 1)
    try:
        with socket.create_connection(address, timeout=limit_s) as connection:
            connection.sendall(nonsense)
            return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
    except OSError:
        return False


@contextmanager
def long_question(
    address: raw_client.Address, topic: str, partition: int, wait_s: float
) -> Iterator[Callable[[float], bool]]:
    """Send a fetch for more bytes than exist, which a leader answers when the request's time is over.

    When this yields, the request has most likely arrived: it had several times as long as an earlier question took.
    """
    question = endless_fetch(topic, partition, wait_s)
    with ExitStack() as ends:
        try:
            connection = ends.enter_context(raw_client.connect(address, wait_s))
            begun = time.monotonic()
            connection.sendall(KAFKA.question(0))
            (size,) = struct.unpack(">i", raw_client.receive(connection, 4, begun + wait_s))
            raw_client.receive(connection, size, begun + wait_s)
            trip_s = time.monotonic() - begun
            connection.sendall(question)
        except (OSError, struct.error) as error:
            raise raw_client.ClosedError(f"{address[0]}:{address[1]} could not be asked: {error}") from error
        time.sleep(min(_MOST_ARRIVAL_S, max(_LEAST_ARRIVAL_S, 5 * trip_s)))

        first = bytearray()

        def answered(limit_s: float) -> bool:
            connection.settimeout(max(0.0, limit_s))
            try:
                if not first:
                    first.extend(connection.recv(1))
            except OSError:  # also a timeout
                return False
            return bool(first)

        yield answered


@dataclass
class _Conversation:
    connection: socket.socket
    selector: selectors.BaseSelector
    questions: Questions
    speech: Speech
    _unsent: bytearray = field(default_factory=bytearray)
    _unread: bytearray = field(default_factory=bytearray)
    _asked: int = 0
    _answers: int = 0
    _received: int = 0
    _pieces: list[int] = field(default_factory=list)

    def run(self) -> Talk:
        question = self.speech.question(self.questions.padding)
        self._unsent += self.speech.hello()
        self._answers = -self.speech.hello_answers
        begun = time.monotonic()
        deadline = begun + self.questions.limit_s
        ending = None
        while ending is None:
            self._ask(question)
            ending = self._step(deadline - time.monotonic())
        return Talk(
            ending,
            max(0, self._answers),
            max(0, self._answers) * len(question),
            self._received,
            time.monotonic() - begun,
            statistics.median(self._pieces) if self._pieces else 0.0,
        )

    def _ask(self, question: bytes) -> None:
        at_once = 1 if self.speech.one_by_one else self.questions.at_once
        while self._asked < min(self.questions.count, max(0, self._answers) + at_once):
            self._unsent += question
            self._asked += 1
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        self.selector.modify(self.connection, wanted)

    def _step(self, left_s: float) -> Ending | None:
        if left_s <= 0:
            return Ending.SILENT
        ready = self.selector.select(left_s)
        if not ready:
            return None
        (_key, events) = ready[0]
        try:
            if events & selectors.EVENT_READ and not self._read():
                return Ending.CLOSED
            if events & selectors.EVENT_WRITE and self._unsent:
                del self._unsent[: self.connection.send(self._unsent)]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError:  # reset, or a pipe that broke because of it
            return Ending.RESET
        return Ending.ANSWERED if self._answers == self.questions.count else None

    def _read(self) -> bool:
        """Read what is there; return False when the other side has closed."""
        piece = self.connection.recv(_READ_BYTES)
        # TLS returns one record at a time; records that it has already read would not wake the selector.
        while isinstance(self.connection, ssl.SSLSocket) and (more := self.connection.pending()):
            piece += self.connection.recv(more)
        if not piece:
            return False
        self._received += len(piece)
        self._pieces.append(len(piece))
        self._unread += piece
        while len(self._unread) >= 4:
            end = 4 + struct.unpack_from(">i", self._unread)[0]
            if len(self._unread) < end:
                break
            del self._unread[:end]
            self._answers += 1
        return True
