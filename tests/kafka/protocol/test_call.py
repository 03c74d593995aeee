"""Versions are negotiated with the server that is asked, of any vendor. TRUST T13"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from harness.kafka.protocol import admin_requests, call, fetch, raw_client
from harness.kafka.protocol.producers import OpenTransaction, open_transactions
from harness.kafka.protocol.transactions import init_producer_id
from tests.fake_server import CORRELATION, offer, serve

SERVER: raw_client.Address = ("host", 1)


def version_of(message: bytes) -> int:
    return int(struct.unpack_from(">h", message, 6)[0])


def empty_metadata(version: int) -> bytes:
    if version >= 9:
        operations = bytes(4) if version <= 10 else b""
        return b"\0" + bytes(4) + b"\x01" + b"\0" + struct.pack(">i", 7) + b"\x01" + operations + b"\0"
    throttle, cluster = bytes(4) if version >= 3 else b"", b"\xff\xff" if version >= 2 else b""
    return throttle + bytes(4) + cluster + struct.pack(">i", 7) + bytes(4)


@pytest.mark.parametrize(
    ("offered", "chosen"), [((0, 3), 3), ((0, 7), 7), ((9, 10), 10), ((0, 99), 12), ((12, 13), 12)]
)
def test_the_highest_version_that_both_know_is_used(
    monkeypatch: pytest.MonkeyPatch, offered: tuple[int, int], chosen: int
) -> None:
    sent = serve(monkeypatch, {3: offered}, [empty_metadata(chosen)])
    assert raw_client.metadata(SERVER, ["orders"], 1.0).controller == 7
    assert version_of(sent[0]) == chosen


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ({3: (0, 9)}, "does not offer it"),
        ({61: (1, 3)}, "offers versions 1 to 3, onceproof knows versions 0 to 0"),
    ],
)
def test_a_request_without_a_common_version_is_named(
    monkeypatch: pytest.MonkeyPatch, versions: dict[int, tuple[int, int]], says: str
) -> None:
    sent = serve(monkeypatch, versions, [])
    with pytest.raises(raw_client.UnsupportedError, match=f"DescribeProducers: host:1 {says}") as raised:
        open_transactions(SERVER, "orders", [0], 1.0)
    assert raised.value.api == "DescribeProducers"
    assert sent == [], "no request that the server does not know was sent"


def test_a_server_without_version_0_of_api_versions_is_asked_in_its_own() -> None:
    """Such a server answers in the form of version 0, with error 35 and the versions that it knows."""
    sent: list[bytes] = []

    def exchange(message: bytes) -> bytes:
        sent.append(message)
        if version_of(message) == 0:
            return CORRELATION + offer({18: (3, 4)}, error=35)
        return CORRELATION + b"\0\0" + b"\x02" + struct.pack(">hhh", 3, 0, 12) + b"\0" + bytes(4) + b"\0"

    assert call._offered(exchange) == {3: (0, 12)}
    assert [version_of(message) for message in sent] == [0, 3]


def test_a_server_that_does_not_report_its_versions_is_an_error() -> None:
    with pytest.raises(raw_client.WireError, match="error 58"):
        call._offered(lambda _message: CORRELATION + offer({}, error=58))


def test_an_answer_that_ends_too_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {3: (0, 7)}, [b"\0\0"])
    with pytest.raises(raw_client.WireError, match="ends too early"):
        raw_client.metadata(SERVER, [], 1.0)


@pytest.mark.parametrize("version", [1, 3, 4])
def test_a_coordinator_is_read_from_each_version_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    known, none = {
        1: ("00000000 0000 ffff 00000005 0001 61 00000001", "00000000 000f ffff ffffffff 0000 ffffffff"),
        3: ("00 00000000 0000 00 00000005 02 61 00000001 00", "00 00000000 000f 00 ffffffff 01 ffffffff 00"),
        4: (
            "00 00000000 02 02 67 00000005 02 61 00000001 0000 00 00 00",
            "00 00000000 02 02 67 ffffffff 01 ffffffff 000f 00 00 00",
        ),
    }[version]  # fmt: skip
    sent = serve(monkeypatch, {10: (0, version)}, map(bytes.fromhex, (known, none)))
    assert raw_client.coordinator(SERVER, "g", transaction=False, timeout_s=1.0) == 5
    assert raw_client.coordinator(SERVER, "g", transaction=False, timeout_s=1.0) is None
    asked = {1: "0001 67 00", 3: "02 67 00 00", 4: "00 02 02 67 00"}[version]
    assert sent[0].endswith(bytes.fromhex(asked))


@pytest.mark.parametrize("version", [1, 5, 7])
def test_offsets_are_read_from_each_version_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    answer = {
        1: "00000001 0001 61 00000001 00000003 0000 ffffffffffffffff 0000000000000007",
        5: "00000000 00000001 0001 61 00000001 00000003 0000 ffffffffffffffff 0000000000000007 00000001",
        7: "00 00000000 02 02 61 02 00000003 0000 ffffffffffffffff 0000000000000007 00000001 00 00 00",
    }[version]
    serve(monkeypatch, {2: (0, version)}, [bytes.fromhex(answer)])
    assert admin_requests.offsets(SERVER, "a", [3], admin_requests.LATEST, 1.0) == {3: 7}


@pytest.mark.parametrize("version", [4, 11])
def test_a_fetch_is_read_from_each_version_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    answer = {
        4: "00000000 00000001 0001 61 00000001 00000000 0000" + "00" * 16 + "00000000 00000049" + "aa" * 73,
        11: "00000000 0000 00000000 00000001 0001 61 00000001 00000000 0000"
        + "00" * 24
        + "00000000 ffffffff 00000049"
        + "aa" * 73,
    }[version]
    serve(monkeypatch, {1: (4, version)}, [bytes.fromhex(answer)])
    assert fetch.fetch(SERVER, "a", 0, 0, 1.0) == 73


@pytest.mark.parametrize("version", [3, 9])
def test_an_append_is_read_from_each_version_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    answer = {
        3: "00000001 0001 61 00000001 00000000 0000 0000000000000009 ffffffffffffffff 00000000",
        9: "00 02 02 61 02 00000000 0000 0000000000000009 ffffffffffffffff 0000000000000000 01 00 00 00 00000000 00",
    }[version]
    refused = bytes.fromhex(
        answer.replace("00000000 0000 0000000000000009", "00000000 0006 0000000000000009")
    )
    serve(monkeypatch, {0: (0, version)}, [bytes.fromhex(answer), refused])
    assert raw_client.produce(SERVER, "a", 0, b"x", 1.0) == 9
    with pytest.raises(raw_client.WireError, match="refused a record for a-0: error 6"):
        raw_client.produce(SERVER, "a", 0, b"x", 1.0)


@pytest.mark.parametrize(
    ("version", "ends"), [(1, "00000007"), (2, "00000007 00"), (4, "00000007" + "ff" * 10 + "00")]
)
def test_an_id_is_taken_over_in_each_version(
    monkeypatch: pytest.MonkeyPatch, version: int, ends: str
) -> None:
    tags = b"\0" if version >= 2 else b""
    sent = serve(monkeypatch, {22: (0, version)}, [tags + struct.pack(">ihqh", 0, 0, 5, 1) + tags])
    assert init_producer_id(SERVER, "id", 7, 1.0).producer_id == 5
    assert sent[0].endswith(bytes.fromhex(ends))


def test_open_transactions_are_listed_by_producer_and_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    def array(items: Sequence[bytes]) -> bytes:
        return bytes([len(items) + 1]) + b"".join(items)

    def producer(number: int, since: int) -> bytes:
        return struct.pack(">qiiqiq", number, 3, 17, 1234, 0, since) + b"\0"

    def partition(number: int, error: int, *producers: bytes) -> bytes:
        return struct.pack(">ih", number, error) + b"\0" + array(producers) + b"\0"

    def answer(*partitions: bytes) -> bytes:
        topic = b"\x07orders" + array(partitions) + b"\0"
        return b"\0" + struct.pack(">i", 0) + array([topic]) + b"\0"

    described = answer(partition(0, 0, producer(4000, -1), producer(4001, 70)), partition(2, 0))
    serve(monkeypatch, {61: (0, 0)}, [described, answer(partition(5, 6))])
    assert open_transactions(SERVER, "orders", [0, 2], 1.0) == [OpenTransaction(0, 4001, 3, 70)]
    with pytest.raises(raw_client.WireError, match="did not list the producers of partition 5: error 6"):
        open_transactions(SERVER, "orders", [5], 1.0)
