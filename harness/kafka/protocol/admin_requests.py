"""Admin requests that the client library cannot send, or answers from an outdated cache.

Raw requests, as in harness.kafka.protocol.raw_client. Elections and reassignments go to any broker, which passes them on to
the controller; requests for offsets go to the leader.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta

from harness.kafka.protocol.addresses import Address
from harness.kafka.protocol.call import Api, call
from harness.kafka.protocol.messages import WireError, first, partitions, reason
from harness.kafka.protocol.security import digest, salted

_SCRAM_NUMBERS, _SCRAM_ITERATIONS = {"sha256": 1, "sha512": 2}, 4096
EARLIEST, LATEST = -2, -1  # instead of a time
_CLIENT, _READ_UNCOMMITTED = -1, 0  # in place of a replica's id; the isolation level
LIST_OFFSETS = Api("ListOffsets", 2, 1, 9)
OFFSET_FOR_LEADER_EPOCH = Api("OffsetForLeaderEpoch", 23, 2, 4)
ELECT_LEADERS = Api("ElectLeaders", 43, 1, 2)
ALTER_PARTITION_REASSIGNMENTS = Api("AlterPartitionReassignments", 45, 0, 0)
ALTER_USER_SCRAM_CREDENTIALS = Api("AlterUserScramCredentials", 51, 0, 0)
DESCRIBE_SHARE_GROUP_OFFSETS = Api("DescribeShareGroupOffsets", 90, 1, 1)  # version 0 has no lag


def reassign(
    address: Address, topic: str, replicas: Mapping[int, Sequence[int]], timeout_s: float
) -> dict[int, str]:
    """Ask for these replicas, in this order; return the refusals by partition. The work goes on after the answer."""
    wanted = [{"partition_index": number, "replicas": nodes} for number, nodes in replicas.items()]
    values = {
        "timeout": timedelta(seconds=timeout_s),
        "topics": [{"name": topic, "partitions": wanted}],
    }
    answer = call(address, ALTER_PARTITION_REASSIGNMENTS, values, timeout_s)
    if answer.error_code:
        raise WireError(f"refused for all partitions: {reason(answer)}")
    every = partitions(answer.responses)
    return {one.partition_index: reason(one) for one in every if one.error_code}


def elect(
    address: Address, topic: str, numbers: Sequence[int], unclean: bool, timeout_s: float
) -> dict[int, str]:
    """Elect the preferred leaders, or with `unclean` any live replica; return the refusals by partition."""
    values = {
        "election_type": int(unclean),
        "topic_partitions": [{"topic": topic, "partitions": numbers}],
        "timeout": timedelta(seconds=timeout_s),
    }
    answer = call(address, ELECT_LEADERS, values, timeout_s)
    if answer.error_code:
        raise WireError(f"refused for all partitions: {reason(answer)}")
    every = [one for topics in answer.replica_election_results for one in topics.partition_result]
    return {one.partition_id: reason(one) for one in every if one.error_code}


def offsets(
    address: Address, topic: str, numbers: Sequence[int], which: int, timeout_s: float
) -> dict[int, int]:
    """Return the log starts (EARLIEST) or the ends that consumers can read (LATEST), as this leader reports."""
    wanted = [{"partition_index": number, "timestamp": which} for number in numbers]
    values = {
        "replica_id": _CLIENT,
        "isolation_level": _READ_UNCOMMITTED,
        "topics": [{"name": topic, "partitions": wanted}],
    }
    answer = call(address, LIST_OFFSETS, values, timeout_s)
    every = partitions(answer.topics)
    for one in every:
        if one.error_code:
            raise WireError(
                f"the leader did not report the offsets of partition {one.partition_index}: {reason(one)}"
            )
    return {one.partition_index: one.offset for one in every}


def end_of_epoch(address: Address, topic: str, partition: int, epoch: int, timeout_s: float) -> int:
    """Return the end of this leader's log when `epoch` ended: its first offset that belongs to a later epoch."""
    wanted = {"partition": partition, "leader_epoch": epoch}
    values = {"replica_id": _CLIENT, "topics": [{"topic": topic, "partitions": [wanted]}]}
    answer = call(address, OFFSET_FOR_LEADER_EPOCH, values, timeout_s)
    found = first(partitions(answer.topics), f"no answer about epoch {epoch} of {topic}-{partition}")
    if found.error_code:
        raise WireError(
            f"the leader did not report the end of the epoch of partition {found.partition}: {reason(found)}"
        )
    return int(found.end_offset)


def share_group_lag(
    address: Address, group: str, topic: str, numbers: Sequence[int], timeout_s: float
) -> dict[int, int]:
    """Return the number of records that a share group has not accepted, as its coordinator reports; -1: it has not begun."""
    wanted = {"topic_name": topic, "partitions": numbers}
    values = {"groups": [{"group_id": group, "topics": [wanted]}]}
    answer = call(address, DESCRIBE_SHARE_GROUP_OFFSETS, values, timeout_s)
    found = first(answer.groups, f"no answer about share group {group}")
    for one in (found, *partitions(found.topics)):
        if one.error_code:
            raise WireError(f"the coordinator did not report the lag of share group {group}: {reason(one)}")
    return {one.partition_index: one.lag for one in partitions(found.topics)}


def make_user(address: Address, user: str, password: str, mechanism: str, timeout_s: float) -> None:
    """Create a SCRAM user. Only the salted hash that the broker keeps is sent, never the password."""
    salt, kind = secrets.token_bytes(24), digest(mechanism)
    made = {
        "name": user,
        "mechanism": _SCRAM_NUMBERS[kind],
        "iterations": _SCRAM_ITERATIONS,
        "salt": salt,
        "salted_password": salted(kind, password, salt, _SCRAM_ITERATIONS),
    }
    values = {"deletions": [], "upsertions": [made]}
    result = first(
        call(address, ALTER_USER_SCRAM_CREDENTIALS, values, timeout_s).results, f"no answer about user {user}"
    )
    if result.error_code:
        raise WireError(f"user {user} cannot be created: {reason(result)}")
