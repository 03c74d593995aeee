"""The quorum of controllers, as a KRaft server describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.kafka.protocol.addresses import Address
from harness.kafka.protocol.call import Api, call
from harness.kafka.protocol.messages import WireError, partitions

DESCRIBE_QUORUM = Api("DescribeQuorum", 55, 0, 1)
_QUORUM = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
_UNKNOWN = -1


@dataclass(frozen=True)
class Quorum:
    error: int  # 6: the server that was asked is not the leader
    leader: int
    leader_epoch: int


def describe_quorum(address: Address, timeout_s: float) -> Quorum:
    """Return the quorum as this controller sees it; only the leader itself knows for sure."""
    return _described(address, timeout_s)[0]


def quorum_leader_time_ms(address: Address, timeout_s: float) -> int:
    """Return the wall clock of the controller that is asked; only the leader of the quorum reports it.

    It is the time at which the leader was last in step with itself (since version 1 of the request; -1 before).
    """
    leader, caught_up = _voters(address, timeout_s)
    return caught_up[leader]


def quorum_voters(address: Address, timeout_s: float) -> tuple[int, ...]:
    """Return the ids of the voting controllers; a broker passes the request on to the leader."""
    return tuple(_voters(address, timeout_s)[1])


def _voters(address: Address, timeout_s: float) -> tuple[int, dict[int, int]]:
    """Return the leader, and the time at which each voter was last in step with it (-1: not in version 0)."""
    quorum, voters = _described(address, timeout_s)
    if quorum.error:
        raise WireError(f"it does not lead the quorum, so it does not report its time: error {quorum.error}")
    times = {one.replica_id: getattr(one, "last_caught_up_timestamp", _UNKNOWN) for one in voters}
    return quorum.leader, times


def _described(address: Address, timeout_s: float) -> tuple[Quorum, tuple[Any, ...]]:
    answer = call(address, DESCRIBE_QUORUM, _QUORUM, timeout_s)
    found = partitions(answer.topics)
    if answer.error_code or not found:
        return Quorum(answer.error_code or _UNKNOWN, _UNKNOWN, _UNKNOWN), ()
    one = found[0]
    return Quorum(one.error_code, one.leader_id, one.leader_epoch), one.current_voters
