"""Four-letter words of ZooKeeper: answers are parsed, and a server that does not answer raises an error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.kafka.protocol import raw_client, zookeeper


@pytest.mark.parametrize(
    ("text", "mode", "epoch"),
    [
        ("Zookeeper version: 3.8.4\nZxid: 0x300000007\nMode: follower\nNode count: 5\n", "follower", 3),
        ("Zxid: 0x100000000\nMode: leader\n", "leader", 1),
        ("This ZooKeeper instance is not currently serving requests\n", "", -1),
    ],
)
def test_mode_and_epoch_are_parsed(text: str, mode: str, epoch: int) -> None:
    assert zookeeper.parse_standing(text) == zookeeper.ServerStanding(mode, epoch)


def test_strangers_never_share_an_id() -> None:
    assert len({zookeeper.vote_hello() for _ in range(50)}) == 50


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening


def _answer(server: socket.socket, answer: bytes) -> None:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


def test_a_four_letter_word_is_answered(server: socket.socket) -> None:
    _answer(server, b"imok")
    assert zookeeper.four_letters(server.getsockname(), "ruok", 5.0) == "imok"


def test_silence_a_closed_connection_and_a_refused_one_raise_different_errors(server: socket.socket) -> None:
    with pytest.raises(raw_client.UnansweredError, match=r"did not answer within 0\.2 s"):
        zookeeper.are_you_ok(server.getsockname(), 0.2)
    server.accept()[0].close()
    _answer(server, b"")
    with pytest.raises(zookeeper.MuteError):
        zookeeper.are_you_ok(server.getsockname(), 5.0)
    place = server.getsockname()
    server.close()
    with pytest.raises(raw_client.ClosedError) as raised:
        zookeeper.are_you_ok(place, 5.0)
    assert not isinstance(raised.value, zookeeper.MuteError)
