"""The probe that talks through a link, against small servers that answer late, close or reset."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.clusters.links.probe import closes_on_nonsense, long_question, talk
from harness.contracts import Ending, Questions
from harness.kafka.protocol.raw_client import ClosedError

ANSWER = struct.pack(">i", 96) + bytes(96)


@contextmanager
def server(behaviour: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Serve connections one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    behaviour(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def question(connection: socket.socket) -> bool:
    """Read one question; return False at the end of the stream."""
    size = connection.recv(4, socket.MSG_WAITALL)
    if len(size) < 4:
        return False
    length = int(struct.unpack(">i", size)[0])
    return length >= 0 and len(connection.recv(length, socket.MSG_WAITALL)) == length


def answers_all(connection: socket.socket) -> None:
    while question(connection):
        connection.sendall(ANSWER)


def answers_in_two_pieces(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while question(connection):
        connection.sendall(ANSWER[:50])
        threading.Event().wait(0.05)
        connection.sendall(ANSWER[50:])


def closes_in_the_third_answer(connection: socket.socket) -> None:
    for part in (ANSWER, ANSWER, ANSWER[:10]):
        question(connection)
        connection.sendall(part)


def resets(connection: socket.socket) -> None:
    question(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def closes_at_the_second_question(connection: socket.socket) -> None:
    question(connection)
    connection.sendall(ANSWER)
    question(connection)


def says_nothing(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


@pytest.mark.parametrize("at_once", [1, 20])
def test_every_question_is_answered(at_once: int) -> None:
    with server(answers_all) as address:
        conversation = talk(address, Questions(count=20, padding=70_000, at_once=at_once))
    assert conversation.ending is Ending.ANSWERED
    assert (conversation.answers, conversation.answered_bytes) == (20, 2000)
    assert conversation.asked_bytes == 20 * 70_028


def test_the_size_of_pieces_is_measured() -> None:
    with server(answers_in_two_pieces) as address:
        conversation = talk(address, Questions(count=3))
    assert conversation.ending is Ending.ANSWERED
    assert conversation.piece_bytes == 50
    assert conversation.took_s >= 0.15


def test_a_connection_closed_after_some_bytes_ends_as_closed() -> None:
    with server(closes_in_the_third_answer) as address:
        conversation = talk(address, Questions(count=10))
    assert (conversation.ending, conversation.answers, conversation.answered_bytes) == (Ending.CLOSED, 2, 210)
    assert conversation.asked_bytes == 2 * 28


def test_a_reset_connection_ends_as_reset() -> None:
    with server(resets) as address:
        conversation = talk(address, Questions())
    assert (conversation.ending, conversation.answered_bytes) == (Ending.RESET, 0)


def test_an_unanswered_question_ends_as_silent() -> None:
    with server(says_nothing) as address:
        conversation = talk(address, Questions(limit_s=0.3))
    assert (conversation.ending, conversation.answered_bytes) == (Ending.SILENT, 0)
    assert conversation.took_s >= 0.3


def test_a_long_question_is_answered_later() -> None:
    def dawdles(connection: socket.socket) -> None:
        question(connection)
        connection.sendall(ANSWER)
        question(connection)
        threading.Event().wait(0.6)
        connection.sendall(ANSWER)

    with server(dawdles) as address, long_question(address, "orders", 0, 1.0) as answered:
        assert not answered(0.0)
        assert answered(3.0)
        assert answered(0.0), "the answer is remembered"
    with (
        server(closes_at_the_second_question) as address,
        long_question(address, "orders", 0, 1.0) as answered,
    ):
        assert not answered(3.0), "a closed connection is not an answer"


def test_a_refused_connection_ends_as_closed_or_raises() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
    assert talk(address, Questions()).ending is Ending.CLOSED
    assert not closes_on_nonsense(address, 0.3)
    with server(resets) as mute, pytest.raises(ClosedError), long_question(mute, "orders", 0, 0.3):
        pass
    with pytest.raises(ClosedError), long_question(address, "orders", 0, 0.3):
        pass


def test_nonsense_shows_whether_the_server_reads() -> None:
    with server(answers_all) as address:
        assert closes_on_nonsense(address, 2.0)
    with server(says_nothing) as address:
        assert not closes_on_nonsense(address, 0.3)
