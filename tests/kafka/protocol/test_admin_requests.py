"""Admin requests of the operator faults as literal bytes, and the clients that follow added partitions."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException

from harness.kafka import topics
from harness.kafka.protocol import admin_requests
from harness.kafka.protocol.raw_client import Address, WireError
from harness.workers.partition_count import PartitionCount
from tests.fake_arena import make_arena
from tests.fake_server import serve

NOWHERE: Address = ("127.0.0.1", 1)
CLIENT = "000e" + b"onceproof-wire".hex()
ORDERS = "6f7264657273"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The last request, and the answer to it."""
    talk = {"answer": b""}
    offered = {2: (0, 2), 23: (0, 2), 43: (0, 2), 45: (0, 0)}
    asked = serve(monkeypatch, offered, iter(lambda: talk["answer"], None))

    class Talk(dict[str, bytes]):
        def __getitem__(self, name: str) -> bytes:
            return asked[-1] if name == "asked" else talk[name]

        def __setitem__(self, name: str, value: bytes) -> None:
            talk[name] = value

    return Talk()


def body(message: bytes, api: str, version: str, tags: str = "") -> str:
    """Return the bytes after the header, which is checked here."""
    header = api + version + "00000001" + CLIENT + tags
    assert message.hex()[8:].startswith(header)
    assert int(message.hex()[:8], 16) == len(message) - 4
    return message.hex()[8 + len(header) :]


def test_a_reassignment_is_these_bytes(sent: dict[str, bytes]) -> None:
    sent["answer"] = bytes.fromhex("00 00000000 0000 00 01 00")
    assert admin_requests.reassign(NOWHERE, "orders", {0: [2, 3], 1: [1]}, 10.0) == {}
    assert body(sent["asked"], "002d", "0000", "00") == (
        "00002710" + "02" + "07" + ORDERS + "03"  # 10 s; one topic; two partitions
        "00000000" + "03" + "00000002" + "00000003" + "00"
        "00000001" + "02" + "00000001" + "00"
        "00" + "00"
    )  # fmt: skip


def test_an_election_is_these_bytes(sent: dict[str, bytes]) -> None:
    sent["answer"] = bytes.fromhex("00 00000000 0000 01 00")
    for unclean, kind in ((False, "00"), (True, "01")):
        assert admin_requests.elect(NOWHERE, "orders", [0, 5], unclean, 10.0) == {}
        assert body(sent["asked"], "002b", "0002", "00") == (
            kind + "02" + "07" + ORDERS + "03" + "00000000" + "00000005" + "00" + "00002710" + "00"
        )


def test_lengths_beyond_a_byte_are_written_as_varints(sent: dict[str, bytes]) -> None:
    sent["answer"] = bytes.fromhex("00 00000000 0000 01 00")
    admin_requests.elect(NOWHERE, "t" * 249, [0], False, 1.0)
    assert body(sent["asked"], "002b", "0002", "00").startswith("0002" + "fa01" + "74" * 249)


def test_refusals_are_reported_by_partition(sent: dict[str, bytes]) -> None:
    sent["answer"] = bytes.fromhex(
        "00 00000000 0000 00"
        f"02 07 {ORDERS} 03"
        "00000000 0000 00 00"
        "00000001 0027 03 6e6f 00"  # INVALID_REPLICA_ASSIGNMENT: "no"
        "00 00"
    )
    assert admin_requests.reassign(NOWHERE, "orders", {0: [2], 1: [1]}, 1.0) == {1: "no"}
    sent["answer"] = bytes.fromhex(f"00 00000000 0000 02 07 {ORDERS} 02 00000003 0050 00 00 00 00")
    assert admin_requests.elect(NOWHERE, "orders", [3], False, 1.0) == {3: "error 80"}


def test_a_refusal_of_everything_is_raised(sent: dict[str, bytes]) -> None:
    sent["answer"] = bytes.fromhex("00 00000000 001f 03 6e6f 01 00")
    with pytest.raises(WireError, match="all partitions: no"):
        admin_requests.reassign(NOWHERE, "orders", {0: [2]}, 1.0)
    sent["answer"] = bytes.fromhex("00 00000000 001f 01 00")
    with pytest.raises(WireError, match="error 31"):
        admin_requests.elect(NOWHERE, "orders", [0], False, 1.0)


def test_an_offsets_request_and_its_answer_are_these_bytes(sent: dict[str, bytes]) -> None:
    sent["answer"] = bytes.fromhex(
        f"00000000 00000001 0006{ORDERS} 00000002"
        "00000000 0000 ffffffffffffffff 0000000000000007"
        "00000002 0000 ffffffffffffffff 0000000000000009"
    )
    assert admin_requests.offsets(NOWHERE, "orders", [0, 2], admin_requests.EARLIEST, 1.0) == {0: 7, 2: 9}
    assert body(sent["asked"], "0002", "0002") == (
        "ffffffff" + "00" + "00000001" + "0006" + ORDERS + "00000002"
        "00000000" + "fffffffffffffffe" + "00000002" + "fffffffffffffffe"
    )  # fmt: skip
    sent["answer"] = sent["answer"].replace(b"\0\0\0\x02\0\0\xff", b"\0\0\0\x02\0\x06\xff")
    with pytest.raises(WireError, match="did not report the offsets of partition 2: error 6"):
        admin_requests.offsets(NOWHERE, "orders", [0, 2], admin_requests.EARLIEST, 1.0)


def test_an_end_of_epoch_request_and_its_answer_are_these_bytes(sent: dict[str, bytes]) -> None:
    prefix = f"00000000 00000001 0006{ORDERS} 00000001"
    sent["answer"] = bytes.fromhex(f"{prefix} 0000 00000004 00000002 00000000000000ff")
    assert admin_requests.end_of_epoch(NOWHERE, "orders", 4, 3, 1.0) == 255
    assert body(sent["asked"], "0017", "0002") == (
        "00000001" + "0006" + ORDERS + "00000001" + "00000004" + "ffffffff" + "00000003"
    )
    sent["answer"] = bytes.fromhex(f"{prefix} 0006 00000004 ffffffff ffffffffffffffff")
    with pytest.raises(WireError, match="did not report the end of the epoch of partition 4: error 6"):
        admin_requests.end_of_epoch(NOWHERE, "orders", 4, 3, 1.0)


# --- clients that follow added partitions -----------------------------------------------------------


def test_partitions_are_asked_for_and_never_fewer_than_before() -> None:
    arena = make_arena()
    assert topics.partitions_now(arena.cluster, arena.topic, 1) == 2
    assert topics.partitions_now(arena.cluster, arena.topic, 4) == 4, "the memory cluster does not report it"


class FakeProducer:
    def __init__(self, answer: Callable[[], int]) -> None:
        self._answer = answer

    def partitions(self, timeout_s: float) -> int:
        return self._answer()


def test_senders_learn_of_new_partitions_for_as_long_as_they_send() -> None:
    before = threading.active_count()
    answers = [3, 0, 5, 4]
    asked = threading.Event()

    def answer() -> int:
        if len(answers) > 1:
            return answers.pop(0)
        asked.set()
        return answers[0]

    known = PartitionCount(3, ask_every_s=0.01)
    producer = FakeProducer(answer)
    known.follow(producer)
    assert asked.wait(10)
    assert known.count == 5, "a late or missing answer does not lower the count"
    del producer
    gc.collect()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before, "the thread ends with its producer"


def test_a_client_without_an_answer_returns_0() -> None:
    from harness.clients.confluent import ConfluentProducer

    class Silent:
        def list_topics(self, topic: str, timeout: float) -> Any:
            raise KafkaException("no answer")

    producer = object.__new__(ConfluentProducer)
    producer._topic, producer._producer = "orders", Silent()  # type: ignore[assignment]
    assert producer.partitions(0.1) == 0
