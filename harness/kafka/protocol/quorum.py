"""The quorum of controllers, as a KRaft server describes it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.kafka.protocol.call import Address, Api, WireError, call
from harness.kafka.protocol.codec import Reader

DESCRIBE_QUORUM = Api("DescribeQuorum", 55, 0, 1, flexible=0)
_QUORUM_TOPIC = b"__cluster_metadata"
_QUORUM_BODY = b"\x02" + bytes([len(_QUORUM_TOPIC) + 1]) + _QUORUM_TOPIC + b"\x02\0\0\0\0\0\0\0"


@dataclass(frozen=True)
class Quorum:
    error: int  # 6: the server that was asked is not the leader
    leader: int
    leader_epoch: int


def describe_quorum(address: Address, timeout_s: float) -> Quorum:
    """Return the quorum as this controller sees it; only the leader itself knows for sure."""
    _version, reader = call(address, DESCRIBE_QUORUM, lambda _: _QUORUM_BODY, timeout_s, most=0)
    return _quorum(reader)


def quorum_leader_time_ms(address: Address, timeout_s: float) -> int:
    """Return the wall clock of the controller that is asked; only the leader of the quorum reports it."""
    leader, caught_up = _ask_voters(address, timeout_s)
    return caught_up[leader]


def quorum_voters(address: Address, timeout_s: float) -> tuple[int, ...]:
    """Return the ids of the voting controllers; a broker passes the request on to the leader."""
    return tuple(_ask_voters(address, timeout_s)[1])


def parse_quorum(answer: bytes) -> Quorum:
    return _quorum(DESCRIBE_QUORUM.reader(0, answer))


def parse_leader_time(answer: bytes) -> int:
    """Return the leader's clock: the time at which the leader was last in step with itself (since version 1)."""
    leader, caught_up = _voters(DESCRIBE_QUORUM.reader(1, answer))
    return caught_up[leader]


def _ask_voters(address: Address, timeout_s: float) -> tuple[int, dict[int, int]]:
    version, reader = call(address, DESCRIBE_QUORUM, lambda _: _QUORUM_BODY, timeout_s)
    return _voters(reader, version)


def _voters(reader: Reader, version: int = 1) -> tuple[int, dict[int, int]]:
    """Return the leader, and the time at which each voter was last in step with it (-1: not in version 0)."""
    quorum = _quorum(reader)
    if quorum.error:
        raise WireError(f"it does not lead the quorum, so it does not report its time: error {quorum.error}")
    reader.take("q")  # high watermark

    def voter() -> tuple[int, int]:
        node, _end = reader.take("i"), reader.take("q")
        caught_up = (reader.take("q"), reader.take("q"))[1] if version >= 1 else -1
        reader.tags()
        return int(node), int(caught_up)

    return quorum.leader, dict(reader.compact_array(voter))


def _quorum(reader: Reader) -> Quorum:
    error: int = reader.take("h")
    if error or reader.varint() < 2:  # no topic
        return Quorum(error or -1, -1, -1)
    reader.compact_string()
    if reader.varint() < 2:  # no partition
        return Quorum(-1, -1, -1)
    reader.take("i")  # its index
    return Quorum(reader.take("h"), reader.take("i"), reader.take("i"))
