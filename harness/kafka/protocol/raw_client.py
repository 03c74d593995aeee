"""A small raw Kafka client: one request to one chosen server over a new connection, with a time limit.

Client libraries take metadata from any broker, even from one that was cut off and has an old view; here the caller chooses
the broker. It has only the requests that the harness needs. Versions are negotiated with the server, so any server that speaks
the protocol will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.kafka.protocol.addresses import Address
from harness.kafka.protocol.call import (
    API_VERSIONS,
    Api,
    ClosedError,
    UnansweredError,
    UnsupportedError,
    ask,
    call,
    connect,
    offered,
    receive,
)
from harness.kafka.protocol.messages import WireError, first, request
from harness.kafka.protocol.produce import Appended, append, produce
from harness.kafka.protocol.quorum import Quorum, describe_quorum, quorum_leader_time_ms, quorum_voters

__all__ = [
    "API_VERSIONS", "Address", "Appended", "ClosedError", "Metadata", "Partition", "Quorum", "UnansweredError",
    "UnsupportedError", "WireError", "api_versions", "append", "ask", "connect", "coordinator", "coordinator_error",
    "describe_quorum", "metadata", "offered", "produce", "quorum_leader_time_ms", "quorum_voters", "receive", "request",
]  # fmt: skip

METADATA = Api("Metadata", 3, 1, 12)
FIND_COORDINATOR = Api("FindCoordinator", 10, 1, 5)
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
    ask(address, request(API_VERSIONS.key, 0, b""), timeout_s)


def metadata(address: Address, topics: Sequence[str], timeout_s: float) -> Metadata:
    """Return what this broker knows about its peers and about `topics`."""
    values = {
        "topics": [{"topic_id": None, "name": name} for name in topics],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    answer = call(address, METADATA, values, timeout_s)
    found = {
        topic.name or "": tuple(
            Partition(
                one.partition_index,
                one.error_code,
                one.leader_id,
                getattr(one, "leader_epoch", _NO_EPOCH),
                one.replica_nodes,
                one.isr_nodes,
            )
            for one in topic.partitions
        )
        for topic in answer.topics
        if topic.partitions
    }
    return Metadata(frozenset(broker.node_id for broker in answer.brokers), found, answer.controller_id)


def coordinator_error(address: Address, key: str, *, transaction: bool, timeout_s: float) -> int:
    """Return 0 once the group or transactional id has a coordinator; the first request creates the coordinator's topic."""
    return _find_coordinator(address, key, transaction=transaction, timeout_s=timeout_s)[0]


def coordinator(address: Address, key: str, *, transaction: bool, timeout_s: float) -> int | None:
    """Return the id of the broker that coordinates the group or transactional id; None while there is none."""
    error, node = _find_coordinator(address, key, transaction=transaction, timeout_s=timeout_s)
    return None if error else node


def _find_coordinator(address: Address, key: str, *, transaction: bool, timeout_s: float) -> tuple[int, int]:
    """Return the error, 0 if there is none, and the id of the broker."""
    values = {"key": key, "key_type": int(transaction), "coordinator_keys": [key]}
    answer = call(address, FIND_COORDINATOR, values, timeout_s)
    if hasattr(answer, "coordinators"):  # since version 4
        answer = first(answer.coordinators, f"no answer about the coordinator of {key}")
    return answer.error_code, answer.node_id
