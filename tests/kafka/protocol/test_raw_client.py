"""The raw Kafka client against literal bytes, and against servers that misbehave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from harness.kafka.batches import batches
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.produce import record_batch
from harness.kafka.segments import records
from tests.fake_server import serve

SERVER: raw_client.Address = ("host", 1)
CLIENT = "000e" + b"onceproof-wire".hex()


def test_an_api_versions_request_is_these_bytes() -> None:
    sent = raw_client.request(18, 0, b"")
    assert sent.hex() == "00000018" + "0012" + "0000" + "00000001" + CLIENT


def test_a_flexible_request_has_tags_after_its_header() -> None:
    sent = raw_client.request(55, 0, b"\xaa", flexible=True)
    assert sent.hex() == "0000001a" + "0037" + "0000" + "00000001" + CLIENT + "00" + "aa"


METADATA_V7 = bytes.fromhex(
    "00000000"  # throttle time
    "00000002"  # two brokers
    "00000001 0001 61 00005263 ffff"
    "00000003 0001 63 00005263 0001 72"
    "0003 636964"  # cluster id
    "00000001"  # controller id
    "00000002"  # two topics
    "0000 0006 6f7264657273 00"
    "00000002"
    "0000 00000000 00000003 00000005"
    "00000002 00000001 00000003 00000001 00000003 00000000"
    "0005 00000001 ffffffff 00000002"
    "00000001 00000001 00000000 00000001 00000001"
    "0003 0004 6e6f6e65 00 00000000"
)  # fmt: skip


def test_metadata_gives_leaders_epochs_and_in_sync_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {3: (0, 7)}, [METADATA_V7])
    metadata = raw_client.metadata(SERVER, ["orders", "none"], 1.0)
    assert metadata.brokers == {1, 3}
    assert metadata.topics == {
        "orders": (
            raw_client.Partition(0, 0, leader=3, leader_epoch=5, replicas=(1, 3), in_sync=(3,)),
            raw_client.Partition(1, 5, leader=-1, leader_epoch=2, replicas=(1,), in_sync=()),
        )
    }


QUORUM_V0 = bytes.fromhex(
    "00"  # tags of the header
    "0000"
    "02 13 5f5f636c75737465725f6d65746164617461"
    "02 00000000 0000 00000066 00000007 0000000000000042"
    "01 01 00 00 00"
)  # fmt: skip


def test_the_leader_of_the_quorum_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {55: (0, 0)}, [QUORUM_V0])
    assert raw_client.describe_quorum(SERVER, 1.0) == raw_client.Quorum(error=0, leader=102, leader_epoch=7)
    assert sent[0].endswith(bytes.fromhex("02 13 5f5f636c75737465725f6d65746164617461 02 00000000 00 00 00"))


def test_a_controller_that_does_not_lead_gives_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    not_leader = QUORUM_V0.replace(bytes.fromhex("000000000066"), bytes.fromhex("0006ffffffff"))
    serve(monkeypatch, {55: (0, 0)}, [not_leader, bytes.fromhex("0000290100")])
    assert raw_client.describe_quorum(SERVER, 1.0).error == 6
    assert raw_client.describe_quorum(SERVER, 1.0).error == 41


def test_the_time_of_the_leader_of_the_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    voters = "03" + "00000065 0000000000000010 000000000000aaaa 000000000000bbbb 00"
    voters += "00000066 0000000000000010 000000000000cccc 000000000000dddd 00"
    answer = "00 0000 02 13 5f5f636c75737465725f6d65746164617461 02 00000000 0000 00000066 00000007 0000000000000042"
    refused = answer.replace("0000 00000066", "0006 ffffffff")
    answers = [answer + voters + "01 00 00 00", refused + "01 01 00 00 00"]
    serve(monkeypatch, {55: (0, 1)}, map(bytes.fromhex, answers))
    assert raw_client.quorum_leader_time_ms(SERVER, 1.0) == 0xDDDD
    with pytest.raises(raw_client.WireError, match="does not lead the quorum"):
        raw_client.quorum_leader_time_ms(SERVER, 1.0)


def test_unknown_tags_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = bytes.fromhex("020503aabbcc810101dd")  # of the header, of an inner structure, and at the end
    serve(monkeypatch, {55: (0, 0)}, [tags + QUORUM_V0[1:-2] + tags + tags])
    assert raw_client.describe_quorum(SERVER, 1.0) == raw_client.Quorum(error=0, leader=102, leader_epoch=7)


def test_unknown_error_codes_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {55: (0, 0)}, [bytes.fromhex("00 270f 01 00")])
    assert raw_client.describe_quorum(SERVER, 1.0).error == 9999


def test_text_that_is_not_utf8_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {55: (0, 0)}, [QUORUM_V0.replace(b"__cluster", b"\xff_cluster")])
    with pytest.raises(raw_client.WireError, match=r"the answer cannot be read: .*UTF-8"):
        raw_client.describe_quorum(SERVER, 1.0)


def test_a_record_batch_is_these_bytes() -> None:
    batch = record_batch(b"probe", timestamp_ms=1)
    checked = bytes.fromhex(
        "0000 00000000 0000000000000001 0000000000000001"
        "ffffffffffffffff ffff ffffffff 00000001"
        "16 00 00 00 01 0a 70726f6265 00"
    )  # fmt: skip
    head = bytes.fromhex("00000000000000000000003dffffffff02")
    assert batch == head + bytes.fromhex("88a268a1") + checked


def test_a_long_value_is_written_completely() -> None:
    batch = record_batch(b"x" * 5000, 0)
    (found,) = batches(batch)
    assert records(batch, found) == [(0, b"x" * 5000)]


def test_an_answer_in_pieces_is_put_together() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        for byte in b"\0\0\0\x06" + b"\0\0\0\x01" + b"ok":
            connection.sendall(bytes([byte]))

    with _server(serve) as address:
        assert raw_client.ask(address, b"question", 5.0) == b"ok"


def test_silence_and_absence_are_different_errors() -> None:
    released = threading.Event()

    def hesitate(connection: socket.socket) -> None:
        released.wait(5)

    with _server(hesitate) as address:
        with pytest.raises(raw_client.UnansweredError, match=r"within 0\.2 s"):
            raw_client.api_versions(address, 0.2)
        released.set()
    with pytest.raises(raw_client.ClosedError):
        raw_client.api_versions(address, 0.2)
    with _server(lambda connection: None) as address, pytest.raises(raw_client.ClosedError):
        raw_client.api_versions(address, 5.0)


def test_a_server_that_does_not_speak_kafka_is_an_error() -> None:
    with (
        _server(lambda connection: connection.sendall(b"HTTP/1.1 400\r\n")) as address,
        pytest.raises(raw_client.WireError, match="does not speak Kafka"),
    ):
        raw_client.api_versions(address, 5.0)


@contextmanager
def _server(serve: Callable[[socket.socket], None]) -> Iterator[raw_client.Address]:
    """Serve one connection in a thread, then close it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            connection, _peer = listening.accept()
            with connection:
                serve(connection)
                connection.settimeout(0.2)
                with suppress(TimeoutError):
                    connection.recv(1000)  # read the question, or closing would reset the connection

        thread = threading.Thread(target=accept)
        thread.start()
        yield listening.getsockname()
        thread.join(10)
