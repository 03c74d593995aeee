"""Admin requests that the client library cannot send, or answers from an outdated cache.

Raw requests, as in harness.kafka.protocol.raw_client. Elections and reassignments go to any broker, which passes them on to
the controller; requests for offsets go to the leader.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Mapping, Sequence

from harness.kafka.protocol.call import Address, Api, WireError, call
from harness.kafka.protocol.codec import Reader, Writer, compact_array, compact_bytes, compact_text
from harness.kafka.protocol.security import digest, salted

_SCRAM_NUMBERS, _SCRAM_ITERATIONS = {"sha256": 1, "sha512": 2}, 4096
EARLIEST, LATEST = -2, -1  # instead of a time
LIST_OFFSETS = Api("ListOffsets", 2, 1, 9, flexible=6)
OFFSET_FOR_LEADER_EPOCH = Api("OffsetForLeaderEpoch", 23, 2, 4, flexible=4)
ELECT_LEADERS = Api("ElectLeaders", 43, 1, 2, flexible=2)
ALTER_PARTITION_REASSIGNMENTS = Api("AlterPartitionReassignments", 45, 0, 0, flexible=0)
ALTER_USER_SCRAM_CREDENTIALS = Api("AlterUserScramCredentials", 51, 0, 0, flexible=0)


def reassign(
    address: Address, topic: str, replicas: Mapping[int, Sequence[int]], timeout_s: float
) -> dict[int, str]:
    """Ask for these replicas, in this order; return the refusals by partition. The work goes on after the answer."""

    def body(version: int) -> Writer:
        made = ALTER_PARTITION_REASSIGNMENTS.writer(version).put("i", _millis(timeout_s))

        def partition(number: int) -> None:
            made.put("i", number).items(replicas[number], lambda node: made.put("i", node)).end()

        return made.items([topic], lambda name: made.text(name).items(replicas, partition).end()).end()

    _version, reader = call(address, ALTER_PARTITION_REASSIGNMENTS, body, timeout_s)
    return _refused(reader, overall_text=True)


def elect(
    address: Address, topic: str, partitions: Sequence[int], unclean: bool, timeout_s: float
) -> dict[int, str]:
    """Elect the preferred leaders, or with `unclean` any live replica; return the refusals by partition."""

    def body(version: int) -> Writer:
        made = ELECT_LEADERS.writer(version).put("b", unclean)

        def one(name: str) -> None:
            made.text(name).items(partitions, lambda number: made.put("i", number)).end()

        return made.items([topic], one).put("i", _millis(timeout_s)).end()

    _version, reader = call(address, ELECT_LEADERS, body, timeout_s)
    return _refused(reader, overall_text=False)


def parse_refused(answer: bytes, *, overall_text: bool) -> dict[int, str]:
    """Return the partitions with an error, from an answer in a flexible version; raise an error of the whole request."""
    return _refused(ALTER_PARTITION_REASSIGNMENTS.reader(0, answer), overall_text=overall_text)


def _refused(reader: Reader, *, overall_text: bool) -> dict[int, str]:
    """Read the refusals; both requests have answers of the same structure."""
    reader.take("i")  # throttle time
    error = reader.take("h")
    text = reader.text() if overall_text else None
    if error:
        raise WireError(f"refused for all partitions: {text or f'error {error}'}")

    def partition() -> tuple[int, int, str | None]:
        found = reader.take("i"), reader.take("h"), reader.text()
        reader.end()
        return found

    def topic() -> tuple[tuple[int, int, str | None], ...]:
        reader.text()
        partitions = reader.items(partition)
        reader.end()
        return partitions

    every = [one for partitions in reader.items(topic) for one in partitions]
    return {index: text or f"error {error}" for index, error, text in every if error}


def offsets(
    address: Address, topic: str, partitions: Sequence[int], which: int, timeout_s: float
) -> dict[int, int]:
    """Return the log starts (EARLIEST) or the ends that consumers can read (LATEST), as this leader reports."""

    def body(version: int) -> Writer:
        made = LIST_OFFSETS.writer(version).put("i", -1)
        if version >= 2:
            made.put("b", 0)  # read_uncommitted

        def one(number: int) -> None:
            made.put("i", number)
            if version >= 4:
                made.put("i", -1)  # whatever epoch the leader is in now
            made.put("q", which).end()

        return made.items([topic], lambda name: made.text(name).items(partitions, one).end()).end()

    version, reader = call(address, LIST_OFFSETS, body, timeout_s)
    return _offsets(reader, version)


def parse_offsets(answer: bytes, version: int = 2) -> dict[int, int]:
    return _offsets(LIST_OFFSETS.reader(version, answer), version)


def _offsets(reader: Reader, version: int) -> dict[int, int]:
    if version >= 2:
        reader.take("i")  # throttle time

    def partition() -> tuple[int, int]:
        index, error, _time, offset = (reader.take(form) for form in "ihqq")
        if version >= 4:
            reader.take("i")  # the leader's epoch
        reader.end()
        if error:
            raise WireError(f"the leader did not report the offsets of partition {index}: error {error}")
        return index, offset

    def topic() -> dict[int, int]:
        reader.text()
        found = dict(reader.items(partition))
        reader.end()
        return found

    return next(iter(reader.items(topic)), {})  # one topic was asked for


def end_of_epoch(address: Address, topic: str, partition: int, epoch: int, timeout_s: float) -> int:
    """Return the end of this leader's log when `epoch` ended: its first offset that belongs to a later epoch."""

    def body(version: int) -> Writer:
        made = OFFSET_FOR_LEADER_EPOCH.writer(version)
        if version >= 3:
            made.put("i", -1)  # a client

        def one(number: int) -> None:
            made.put("iii", number, -1, epoch).end()  # -1: whatever epoch the leader is in now

        return made.items([topic], lambda name: made.text(name).items([partition], one).end()).end()

    _version, reader = call(address, OFFSET_FOR_LEADER_EPOCH, body, timeout_s)
    return _end_of_epoch(reader)


def parse_end_of_epoch(answer: bytes, version: int = 2) -> int:
    return _end_of_epoch(OFFSET_FOR_LEADER_EPOCH.reader(version, answer))


def _end_of_epoch(reader: Reader) -> int:
    reader.take("i"), reader.count(), reader.text(), reader.count()  # throttle time, one topic, one partition
    error, partition = reader.take("h"), reader.take("i")
    if error:
        raise WireError(
            f"the leader did not report the end of the epoch of partition {partition}: error {error}"
        )
    reader.take("i")  # the latest epoch up to the one asked for
    return int(reader.take("q"))


def make_user(address: Address, user: str, password: str, mechanism: str, timeout_s: float) -> None:
    """Create a SCRAM user. Only the salted hash that the broker keeps is sent, never the password."""
    salt, kind = secrets.token_bytes(24), digest(mechanism)
    made = salted(kind, password, salt, _SCRAM_ITERATIONS)
    one = (
        compact_text(user)
        + struct.pack(">bi", _SCRAM_NUMBERS[kind], _SCRAM_ITERATIONS)
        + compact_bytes(salt)
        + compact_bytes(made)
        + b"\0"
    )
    body = compact_array([]) + compact_array([one]) + b"\0"  # no user is deleted
    _version, reader = call(address, ALTER_USER_SCRAM_CREDENTIALS, lambda _: body, timeout_s)
    reader.take("i")  # throttle time
    reader.varint(), reader.compact_string()  # one user
    error, text = reader.take("h"), reader.compact_string()
    if error:
        raise WireError(f"user {user} cannot be created: {text or f'error {error}'}")


def _millis(seconds: float) -> int:
    return int(seconds * 1000)
