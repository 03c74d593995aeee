"""A node, its links and its disk, and the values by which powers describe what they do to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable


@runtime_checkable
class Node(Protocol):
    """A broker, a controller, a ZooKeeper server or a worker process."""

    @property
    def name(self) -> str: ...


class Lane(StrEnum):
    """A set of client links that can be cut apart from other clients' links."""

    CONTROL = "control"  # never proxied: admin and final reader
    PRODUCE = "produce"
    CONSUME = "consume"


class Direction(StrEnum):
    """Which way of a link: requests go from its source to its destination, answers come back."""

    BOTH = "both"
    REQUESTS = "requests"
    ANSWERS = "answers"


@dataclass(frozen=True, order=True)
class Link:
    """A way that traffic takes: from a node or a client lane (the side that connects) to a node.

    What a controller is asked goes a way of its own, also between nodes that are brokers and controllers at once.
    What two ZooKeeper servers have with each other, following and voting, is one link.
    """

    source: str
    destination: str
    controller: bool = False  # to the destination as a controller: metadata, heartbeats, votes
    zookeeper: bool = False  # to a ZooKeeper server, from a broker or from another one

    def __str__(self) -> str:
        kind = ":controller" if self.controller else ":zookeeper" if self.zookeeper else ""
        return f"{self.source}->{self.destination}{kind}"


@dataclass(frozen=True)
class Cut:
    link: Link
    direction: Direction = Direction.BOTH


@dataclass(frozen=True)
class Toxic:
    """What a link does to the bytes that pass: a kind of Toxiproxy's, its settings, and which way."""

    kind: str  # latency, bandwidth, slicer, reset_peer, limit_data, …
    attributes: Mapping[str, int] = field(default_factory=dict, hash=False)
    direction: Direction = Direction.BOTH


class Ending(StrEnum):
    """How a conversation through a link ended."""

    ANSWERED = "answered"  # every question
    CLOSED = "closed"
    RESET = "reset"
    SILENT = "silent"  # still open, but nothing comes back


@dataclass(frozen=True)
class Questions:
    """What a probe asks on one connection: how many questions, how long they are, how many before an answer."""

    count: int = 1
    padding: int = 0  # bytes that are added to each
    at_once: int = 1
    limit_s: float = 5.0  # for all of it


@dataclass(frozen=True)
class Talk:
    """What came of it."""

    ending: Ending
    answers: int
    asked_bytes: int  # of the questions that were answered
    answered_bytes: int  # all that arrived
    took_s: float  # from the first byte sent to the end
    piece_bytes: float = 0.0  # median of what arrived at once


class DiskHarm(StrEnum):
    """What a disk does wrong to the logs of the topics under test."""

    SLOW_APPEND = "slow_append"
    SLOW_FSYNC = "slow_fsync"
    SLOW_READ = "slow_read"
    FULL = "full"  # ENOSPC
    BROKEN = "broken"  # EIO
    READ_ONLY = "read_only"


@dataclass(frozen=True)
class DiskFault:
    harm: DiskHarm
    delay_ms: int = 0  # of the slow ones
    topics_prefix: str = ""
    folder: str = ""  # the name of a log folder; empty: all of them


@dataclass(frozen=True)
class HeldRequests:
    """From the first request of one of these kinds on, all that a connection sends is held; new connections pass."""

    api_keys: tuple[int, ...]  # of the Kafka protocol, such as 26 for EndTxn
    lane: Lane = Lane.PRODUCE
    connections: int = 1  # how many are held; others pass


@dataclass(frozen=True)
class Memory:
    """What the kernel tells of a node's memory, page cache included."""

    has_mb: float
    cache_mb: float  # of that: page cache, which it has to give back when there is no other
    limit_mb: float | None
    refused: int  # how often the limit was reached: nothing was given before something was taken back
