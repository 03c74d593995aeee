"""What operators and their proofs ask of a broker and the client library cannot, or only from a cache that is old.

Raw requests, as in harness.wire. Elections and reassignments go to any broker, which hands them to the controller;
questions for offsets go to the leader.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence

from harness.wire import Address, Reader, WireError, ask, request
from harness.wire_security import digest, salted

_ALTER_USER_SCRAM_CREDENTIALS = 51
_SCRAM_NUMBERS, _SCRAM_ITERATIONS = {"sha256": 1, "sha512": 2}, 4096
EARLIEST, LATEST = -2, -1  # instead of a time
_LIST_OFFSETS, _OFFSET_FOR_LEADER_EPOCH, _ELECT_LEADERS, _ALTER_PARTITION_REASSIGNMENTS = 2, 23, 43, 45


def reassign(
    address: Address, topic: str, replicas: Mapping[int, Sequence[int]], timeout_s: float
) -> dict[int, str]:
    """Ask for these replicas, in this order; what was refused, by partition. It goes on after the answer."""
    wanted = [_int(partition) + compact_array(map(_int, ids)) + b"\0" for partition, ids in replicas.items()]
    body = _millis(timeout_s) + compact_array([compact_text(topic) + compact_array(wanted) + b"\0"]) + b"\0"
    answer = ask(address, request(_ALTER_PARTITION_REASSIGNMENTS, 0, body, flexible=True), timeout_s)
    return parse_refused(answer, overall_text=True)


def elect(
    address: Address, topic: str, partitions: Sequence[int], unclean: bool, timeout_s: float
) -> dict[int, str]:
    """Elect the preferred leaders, or with `unclean` any that lives; what was refused, by partition."""
    places = compact_array([compact_text(topic) + compact_array(map(_int, partitions)) + b"\0"])
    body = bytes([unclean]) + places + _millis(timeout_s) + b"\0"
    answer = ask(address, request(_ELECT_LEADERS, 2, body, flexible=True), timeout_s)
    return parse_refused(answer, overall_text=False)


def parse_refused(answer: bytes, *, overall_text: bool) -> dict[int, str]:
    """Partitions with an error; one that concerns all of them is raised. Both answers are built alike."""
    reader = Reader(answer)
    reader.tags()
    reader.take("i")  # throttle time
    error = reader.take("h")
    text = reader.compact_string() if overall_text else None
    if error:
        raise WireError(f"refused for all partitions: {text or f'error {error}'}")

    def partition() -> tuple[int, int, str | None]:
        told = reader.take("i"), reader.take("h"), reader.compact_string()
        reader.tags()
        return told

    def topic() -> tuple[tuple[int, int, str | None], ...]:
        reader.compact_string()
        partitions = reader.compact_array(partition)
        reader.tags()
        return partitions

    every = [one for partitions in reader.compact_array(topic) for one in partitions]
    return {index: text or f"error {error}" for index, error, text in every if error}


def offsets(
    address: Address, topic: str, partitions: Sequence[int], which: int, timeout_s: float
) -> dict[int, int]:
    """Where the logs begin (EARLIEST) or how far consumers can read (LATEST), as this leader tells."""
    asked = b"".join(struct.pack(">iq", partition, which) for partition in partitions)
    body = struct.pack(">ibi", -1, 0, 1) + _old_text(topic) + struct.pack(">i", len(partitions)) + asked
    return parse_offsets(ask(address, request(_LIST_OFFSETS, 2, body), timeout_s))


def parse_offsets(answer: bytes) -> dict[int, int]:
    reader = Reader(answer)
    reader.take("i"), reader.take("i"), reader.string()  # throttle time, one topic

    def partition() -> tuple[int, int]:
        index, error, _time, offset = (reader.take(form) for form in "ihqq")
        if error:
            raise WireError(f"offsets of partition {index} were not told: error {error}")
        return index, offset

    return dict(reader.array(partition))


def end_of_epoch(address: Address, topic: str, partition: int, epoch: int, timeout_s: float) -> int:
    """Where the log of this leader stood when `epoch` ended: its first offset that belongs to a later one."""
    asked = struct.pack(">iiii", 1, partition, -1, epoch)  # -1: whatever epoch the leader is in now
    body = struct.pack(">i", 1) + _old_text(topic) + asked
    return parse_end_of_epoch(ask(address, request(_OFFSET_FOR_LEADER_EPOCH, 2, body), timeout_s))


def parse_end_of_epoch(answer: bytes) -> int:
    reader = Reader(answer)
    (
        reader.take("i"),
        reader.take("i"),
        reader.string(),
        reader.take("i"),
    )  # throttle, one topic, one partition
    error, partition = reader.take("h"), reader.take("i")
    if error:
        raise WireError(f"the end of an epoch of partition {partition} was not told: error {error}")
    reader.take("i")  # the latest epoch up to the one asked for
    return int(reader.take("q"))


def make_user(address: Address, user: str, password: str, mechanism: str, timeout_s: float) -> None:
    """Let a user in by SCRAM. Only what the broker has to keep is sent, never the password."""
    salt, kind = secrets.token_bytes(24), digest(mechanism)
    made = salted(kind, password, salt, _SCRAM_ITERATIONS)
    one = (
        compact_text(user)
        + bytes([_SCRAM_NUMBERS[kind]])
        + _int(_SCRAM_ITERATIONS)
        + _bytes(salt)
        + _bytes(made)
        + b"\0"
    )
    body = compact_array([]) + compact_array([one]) + b"\0"  # nobody is deleted
    reader = Reader(ask(address, request(_ALTER_USER_SCRAM_CREDENTIALS, 0, body, flexible=True), timeout_s))
    reader.tags()
    reader.take("i")  # throttle time
    reader.varint(), reader.compact_string()  # one user
    error, text = reader.take("h"), reader.compact_string()
    if error:
        raise WireError(f"user {user} cannot be made: {text or f'error {error}'}")


def _int(value: int) -> bytes:
    return struct.pack(">i", value)


def _millis(seconds: float) -> bytes:
    return _int(int(seconds * 1000))


def _old_text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def compact_text(text: str) -> bytes:
    """A string of flexible versions."""
    return _varint(len(text.encode()) + 1) + text.encode()


def _bytes(raw: bytes) -> bytes:
    return _varint(len(raw) + 1) + raw


def compact_array(items: Iterable[bytes]) -> bytes:
    """An array of flexible versions."""
    made = list(items)
    return _varint(len(made) + 1) + b"".join(made)


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])
