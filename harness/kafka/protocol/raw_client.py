"""A small raw Kafka client: one request to one chosen server over a new connection, with a time limit.

Client libraries take metadata from any broker, even from one that was cut off and has an old view; here the caller chooses
the broker. It has only the requests that the harness needs. Versions are negotiated with the server, so any server that speaks
the protocol will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.kafka.protocol.call import (
    API_VERSIONS,
    Address,
    Api,
    ClosedError,
    UnansweredError,
    UnsupportedError,
    WireError,
    ask,
    call,
    connect,
    offered,
    receive,
    request,
)
from harness.kafka.protocol.codec import Reader, Writer
from harness.kafka.protocol.produce import Appended, append, crc32c, produce, record_batch
from harness.kafka.protocol.quorum import (
    Quorum,
    describe_quorum,
    parse_leader_time,
    parse_quorum,
    quorum_leader_time_ms,
    quorum_voters,
)

__all__ = [
    "Address", "Api", "Appended", "ClosedError", "Metadata", "Partition", "Quorum", "Reader", "UnansweredError",
    "UnsupportedError", "WireError", "api_versions", "append", "ask", "call", "connect", "coordinator",
    "coordinator_error", "crc32c", "describe_quorum", "metadata", "offered", "parse_leader_time", "parse_metadata",
    "parse_quorum", "produce", "quorum_leader_time_ms", "quorum_voters", "receive", "record_batch", "request",
]  # fmt: skip

METADATA = Api("Metadata", 3, 1, 12, flexible=9)
FIND_COORDINATOR = Api("FindCoordinator", 10, 1, 5, flexible=3)
_NO_ID = bytes(16)
_NO_EPOCH = -1


@dataclass(frozen=True)
class Partition:
    index: int
    error: int
    leader: int  # -1: none
    leader_epoch: int  # -1: the server is too old to report it
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True)
class Metadata:
    brokers: frozenset[int]  # that the answering broker considers alive
    topics: dict[str, tuple[Partition, ...]]  # without topics that the broker does not know
    controller: int = -1  # the active one with ZooKeeper, a random broker with KRaft; -1: unknown


def api_versions(address: Address, timeout_s: float) -> None:
    """Send the cheapest request that any server answers; raise WireError if no answer comes."""
    ask(address, request(API_VERSIONS, 0, b""), timeout_s)


def metadata(address: Address, topics: Sequence[str], timeout_s: float) -> Metadata:
    """Return what this broker knows about its peers and about `topics`."""

    def body(version: int) -> Writer:
        made = METADATA.writer(version)

        def one(name: str) -> None:
            if version >= 10:
                made.put("16s", _NO_ID)
            made.text(name).end()

        made.items(topics, one)
        if version >= 4:
            made.put("b", 0)  # the request creates no topic
        if 8 <= version <= 10:
            made.put("b", 0)
        if version >= 8:
            made.put("b", 0)
        return made.end()

    version, reader = call(address, METADATA, body, timeout_s)
    return _metadata(reader, version)


def parse_metadata(answer: bytes, version: int = 7) -> Metadata:
    return _metadata(METADATA.reader(version, answer), version)


def _metadata(reader: Reader, version: int) -> Metadata:
    def broker() -> int:
        node: int = reader.take("i")
        reader.text(), reader.take("i"), reader.text()  # host, port, rack
        reader.end()
        return node

    def partition() -> Partition:
        error, index, leader = reader.take("h"), reader.take("i"), reader.take("i")
        epoch = reader.take("i") if version >= 7 else _NO_EPOCH
        replicas, in_sync = (reader.items(lambda: int(reader.take("i"))) for _ in range(2))
        if version >= 5:
            reader.items(lambda: int(reader.take("i")))  # offline
        reader.end()
        return Partition(index, error, leader, epoch, replicas, in_sync)

    def topic() -> tuple[str, tuple[Partition, ...]]:
        _error, name = reader.take("h"), reader.text()
        if version >= 10:
            reader.take("16s")
        reader.take("b")  # internal
        partitions = reader.items(partition)
        if version >= 8:
            reader.take("i")
        reader.end()
        return name or "", partitions

    if version >= 3:
        reader.take("i")  # throttle time
    brokers = frozenset(reader.items(broker))
    if version >= 2:
        reader.text()  # cluster id
    controller = int(reader.take("i"))
    found = reader.items(topic)
    return Metadata(brokers, {name: partitions for name, partitions in found if partitions}, controller)


def coordinator_error(address: Address, key: str, *, transaction: bool, timeout_s: float) -> int:
    """Return 0 once the group or transactional id has a coordinator; the first request creates the coordinator's topic."""
    return _find_coordinator(address, key, transaction=transaction, timeout_s=timeout_s)[0]


def coordinator(address: Address, key: str, *, transaction: bool, timeout_s: float) -> int | None:
    """Return the id of the broker that coordinates the group or transactional id; None while there is none."""
    error, node = _find_coordinator(address, key, transaction=transaction, timeout_s=timeout_s)
    return None if error else node


def _find_coordinator(address: Address, key: str, *, transaction: bool, timeout_s: float) -> tuple[int, int]:
    """Return the error, 0 if there is none, and the id of the broker."""

    def body(version: int) -> Writer:
        made = FIND_COORDINATOR.writer(version)
        if version < 4:
            return made.text(key).put("b", transaction).end()
        return made.put("b", transaction).items([key], made.text).end()

    version, reader = call(address, FIND_COORDINATOR, body, timeout_s)
    reader.take("i")  # throttle time
    if version < 4:
        error = int(reader.take("h"))
        reader.text()  # the error's text
        return error, int(reader.take("i"))
    if reader.count() < 1:
        raise WireError(f"no answer about the coordinator of {key}")
    reader.text()
    node = int(reader.take("i"))
    reader.text(), reader.take("i")  # host, port
    return int(reader.take("h")), node
