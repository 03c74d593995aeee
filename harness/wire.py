"""A tiny raw Kafka client: one question to one chosen server over a socket of its own, with a limit.

Client libraries answer metadata from any broker, also from one that was cut off and has an old view; here the
caller chooses whom to ask. Only what the harness needs: ApiVersions, Metadata, FindCoordinator, DescribeQuorum,
Produce.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.errors import ClusterError
from harness.wire_security import CertificateError, security_of

T = TypeVar("T")
Address = tuple[str, int]

_PRODUCE, _METADATA, _FIND_COORDINATOR, _API_VERSIONS, _DESCRIBE_QUORUM = 0, 3, 10, 18, 55
_CLIENT_ID = b"onceproof-wire"
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_QUORUM_TOPIC = b"__cluster_metadata"
_QUORUM_BODY = b"\x02" + bytes([len(_QUORUM_TOPIC) + 1]) + _QUORUM_TOPIC + b"\x02\0\0\0\0\0\0\0"


class WireError(ClusterError):
    """The server did not answer within the limit, closed the connection, or answered with an error."""


class UnansweredError(WireError):
    """Connected and asked, but no answer came within the limit."""


class ClosedError(WireError):
    """Refused, or closed before the answer was complete: nobody is there."""


@dataclass(frozen=True)
class Partition:
    index: int
    error: int
    leader: int  # -1: none
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True)
class Metadata:
    brokers: frozenset[int]  # those that the answering broker holds for alive
    topics: dict[str, tuple[Partition, ...]]  # without those that it does not know
    controller: int = -1  # right with ZooKeeper, made up by KRaft; -1: none is known


@dataclass(frozen=True)
class Quorum:
    error: int  # 6: the one asked is not the leader
    leader: int
    leader_epoch: int


@dataclass(frozen=True)
class Appended:
    offset: int
    time_ms: int  # by the broker's clock if the topic has LogAppendTime; else -1


class Reader:
    """Takes an answer apart, field by field. `compact` lengths are those of flexible versions."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> Any:
        (value,) = struct.unpack_from(">" + form, self._data, self._at)
        self._at += struct.calcsize(">" + form)
        return value

    def string(self) -> str | None:
        return self._text(self.take("h"))

    def compact_string(self) -> str | None:
        return self._text(self.varint() - 1)

    def array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return tuple(item() for _ in range(self.take("i")))

    def compact_array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return tuple(item() for _ in range(self.varint() - 1))

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte: int = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            size = self.varint()
            self._at += size

    def _text(self, size: int) -> str | None:
        if size < 0:
            return None
        raw = self._data[self._at : self._at + size]
        self._at += size
        return raw.decode()


def _string(text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">h", len(raw)) + raw


def request(api: int, version: int, body: bytes, *, flexible: bool = False, correlation: int = 1) -> bytes:
    """A whole request with its size in front."""
    header = (
        struct.pack(">hhi", api, version, correlation) + _string(_CLIENT_ID) + (b"\0" if flexible else b"")
    )
    return struct.pack(">i", len(header) + len(body)) + header + body


def ask(address: Address, message: bytes, timeout_s: float) -> bytes:
    """Send one request on a connection of its own; the answer without its size and correlation id."""
    deadline = time.monotonic() + timeout_s
    place = f"{address[0]}:{address[1]}"
    try:
        with connect(address, timeout_s) as connection:
            return _exchange(connection, message, deadline, place)
    except TimeoutError:
        raise UnansweredError(f"{place} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise ClosedError(f"{place} is not there: {error}") from error


def connect(address: Address, timeout_s: float) -> socket.socket:
    """A connection on which questions can be asked: encrypted and authenticated, where the address says so.

    Raises OSError like a plain connect, and RefusedError when one side does not accept the other.
    """
    deadline = time.monotonic() + timeout_s
    place, security = f"{address[0]}:{address[1]}", security_of(address)
    connection = socket.create_connection((address[0], int(address[1])), timeout=timeout_s)
    if security is None:
        return connection
    try:
        if security.encrypted:
            connection = security.context.wrap_socket(connection, server_hostname=address[0])
        if security.sasl:
            security.authenticate(
                place,
                lambda api, version, body: _exchange(
                    connection, request(api, version, body), deadline, place
                ),
            )
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise CertificateError(f"{place}: its certificate is refused: {error.verify_message}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _exchange(connection: socket.socket, message: bytes, deadline: float, place: str) -> bytes:
    connection.sendall(message)
    (size,) = struct.unpack(">i", receive(connection, 4, deadline))
    if not 4 <= size <= _MAX_ANSWER_BYTES:
        raise WireError(
            f"{place} answered with a size of {size} bytes: it does not speak Kafka, or only through TLS"
        )
    return receive(connection, size, deadline)[4:]


def receive(connection: socket.socket, size: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(size)
        if not part:
            raise ConnectionResetError("closed before the answer was complete")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def api_versions(address: Address, timeout_s: float) -> None:
    """The cheapest question that any server answers; raises WireError when none comes back."""
    ask(address, request(_API_VERSIONS, 0, b""), timeout_s)


def metadata(address: Address, topics: Sequence[str], timeout_s: float) -> Metadata:
    """What this very broker knows about its peers and about `topics` (version 7: the first with epochs)."""
    wanted = struct.pack(">i", len(topics)) + b"".join(_string(topic) for topic in topics) + b"\0"
    return parse_metadata(ask(address, request(_METADATA, 7, wanted), timeout_s))


def parse_metadata(answer: bytes) -> Metadata:
    reader = Reader(answer)
    reader.take("i")  # throttle time

    def broker() -> int:
        node: int = reader.take("i")
        reader.string(), reader.take("i"), reader.string()  # host, port, rack
        return node

    def partition() -> Partition:
        error, index, leader, epoch = reader.take("h"), reader.take("i"), reader.take("i"), reader.take("i")
        replicas, in_sync, _offline = (reader.array(lambda: int(reader.take("i"))) for _ in range(3))
        return Partition(index, error, leader, epoch, replicas, in_sync)

    def topic() -> tuple[int, str, tuple[Partition, ...]]:
        error, name, _internal = reader.take("h"), reader.string(), reader.take("b")
        return error, name or "", reader.array(partition)

    brokers = frozenset(reader.array(broker))
    reader.string()  # cluster id
    controller = int(reader.take("i"))
    found = reader.array(topic)
    return Metadata(
        brokers, {name: partitions for _error, name, partitions in found if partitions}, controller
    )


def coordinator_error(address: Address, key: str, *, transaction: bool, timeout_s: float) -> int:
    """0 once there is a coordinator for the group or transactional id; the first asking makes its topic."""
    reader = Reader(
        ask(address, request(_FIND_COORDINATOR, 1, _string(key) + bytes([transaction])), timeout_s)
    )
    reader.take("i")  # throttle time
    return int(reader.take("h"))


def coordinator(address: Address, key: str, *, transaction: bool, timeout_s: float) -> int | None:
    """The id of the broker that coordinates the group or transactional id; None while there is none."""
    reader = Reader(
        ask(address, request(_FIND_COORDINATOR, 1, _string(key) + bytes([transaction])), timeout_s)
    )
    reader.take("i")  # throttle time
    error = reader.take("h")
    reader.string()  # the error's text
    return None if error else int(reader.take("i"))


def describe_quorum(address: Address, timeout_s: float) -> Quorum:
    """What this very controller says about the quorum's leader; only the leader itself knows for sure."""
    return parse_quorum(ask(address, request(_DESCRIBE_QUORUM, 0, _QUORUM_BODY, flexible=True), timeout_s))


def quorum_leader_time_ms(address: Address, timeout_s: float) -> int:
    """The wall clock of the controller that is asked; only the leader of the quorum tells it."""
    return parse_leader_time(
        ask(address, request(_DESCRIBE_QUORUM, 1, _QUORUM_BODY, flexible=True), timeout_s)
    )


def quorum_voters(address: Address, timeout_s: float) -> tuple[int, ...]:
    """The ids of the controllers that vote; a broker that is asked passes it on to the one that leads."""
    answer = ask(address, request(_DESCRIBE_QUORUM, 1, _QUORUM_BODY, flexible=True), timeout_s)
    return tuple(_voters(answer)[1])


def parse_leader_time(answer: bytes) -> int:
    """A leader gives the present as the time when it was last in step with itself (version 1: the first with it)."""
    leader, caught_up = _voters(answer)
    return caught_up[leader]


def _voters(answer: bytes) -> tuple[int, dict[int, int]]:
    """The leader, and when each voter was last in step with it."""
    reader = Reader(answer)
    quorum = _quorum(reader)
    if quorum.error:
        raise WireError(f"it does not lead the quorum, so it does not tell its time: error {quorum.error}")
    reader.take("q")  # high watermark

    def voter() -> tuple[int, int]:
        node, _end, _fetched, caught_up = (reader.take(form) for form in "iqqq")
        reader.tags()
        return int(node), int(caught_up)

    return quorum.leader, dict(reader.compact_array(voter))


def parse_quorum(answer: bytes) -> Quorum:
    return _quorum(Reader(answer))


def _quorum(reader: Reader) -> Quorum:
    reader.tags()
    error: int = reader.take("h")
    if error or reader.varint() < 2:  # no topic
        return Quorum(error or -1, -1, -1)
    reader.compact_string()
    if reader.varint() < 2:  # no partition
        return Quorum(-1, -1, -1)
    reader.take("i")  # its index
    return Quorum(reader.take("h"), reader.take("i"), reader.take("i"))


def produce(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> int:
    """Append one record with acks=all at this very broker; its offset."""
    return append(address, topic, partition, value, timeout_s).offset


def append(address: Address, topic: str, partition: int, value: bytes, timeout_s: float) -> Appended:
    """Append one record with acks=all at this very broker; where it stands, and when that was by its clock."""
    batch = record_batch(value, int(time.time() * 1000))
    body = struct.pack(">hhi", -1, -1, int(timeout_s * 1000))  # no transaction, acks=all
    body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    reader = Reader(ask(address, request(_PRODUCE, 7, body), timeout_s))
    reader.take("i"), reader.string(), reader.take("i"), reader.take("i")
    error, offset, time_ms = reader.take("h"), int(reader.take("q")), int(reader.take("q"))
    if error:
        raise WireError(f"{address[0]}:{address[1]} refused a record for {topic}-{partition}: error {error}")
    return Appended(offset, time_ms)


def record_batch(value: bytes, timestamp_ms: int) -> bytes:
    """A batch (magic 2) with one record that has no key and no headers; `value` of up to 50 bytes."""
    if len(value) > 50:  # so that every length below fits one byte of a zigzag varint
        raise ValueError(f"a probe's value has at most 50 bytes, not {len(value)}")
    record = b"\0\0\0\x01" + bytes([len(value) * 2]) + value + b"\0"
    record = bytes([len(record) * 2]) + record
    checked = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    tail = struct.pack(">ibI", -1, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def crc32c(data: bytes) -> int:
    """The checksum of record batches (Castagnoli); bit by bit, which is enough for a probe."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF
