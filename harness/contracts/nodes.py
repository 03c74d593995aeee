"""Nodes, links and disks, and the values that powers take and return."""

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
    """A set of client links that can be cut separately from other clients' links."""

    CONTROL = "control"  # never proxied: admin and final reader
    PRODUCE = "produce"
    CONSUME = "consume"


class Direction(StrEnum):
    """The direction on a link: requests go from its source to its destination, answers come back."""

    BOTH = "both"
    REQUESTS = "requests"
    ANSWERS = "answers"


@dataclass(frozen=True, order=True)
class Link:
    """A network path: from a node or a client lane (the side that connects) to a node.

    Requests to a controller have a link of their own, also between combined nodes. The traffic between two ZooKeeper servers,
    following and voting, is one link.
    """

    source: str
    destination: str
    controller: bool = False  # to the destination as a controller: metadata, heartbeats, votes
    zookeeper: bool = False  # to a ZooKeeper server, from a broker or from another ZooKeeper server

    def __str__(self) -> str:
        kind = ":controller" if self.controller else ":zookeeper" if self.zookeeper else ""
        return f"{self.source}->{self.destination}{kind}"


@dataclass(frozen=True)
class Cut:
    link: Link
    direction: Direction = Direction.BOTH


@dataclass(frozen=True)
class Toxic:
    """A manipulation of the bytes on a link: a toxic of Toxiproxy, its settings and the direction."""

    kind: str  # latency, bandwidth, slicer, reset_peer, limit_data, …
    attributes: Mapping[str, int] = field(default_factory=dict, hash=False)
    direction: Direction = Direction.BOTH


class Ending(StrEnum):
    """The end of a conversation through a link."""

    ANSWERED = "answered"  # every question
    CLOSED = "closed"
    RESET = "reset"
    SILENT = "silent"  # still open, but nothing comes back


@dataclass(frozen=True)
class Questions:
    """The requests of a probe on one connection: their number, their length, and how many are sent before an answer."""

    count: int = 1
    padding: int = 0  # bytes that are added to each request
    at_once: int = 1
    limit_s: float = 5.0  # for the whole conversation


@dataclass(frozen=True)
class Talk:
    """The result of a probe's conversation."""

    ending: Ending
    answers: int
    asked_bytes: int  # of the requests that were answered
    answered_bytes: int  # of all answers
    took_s: float  # from the first byte sent to the end
    piece_bytes: float = 0.0  # median size of a received piece


class DiskHarm(StrEnum):
    """A kind of disk fault, for the logs of the topics under test."""

    SLOW_APPEND = "slow_append"
    SLOW_FSYNC = "slow_fsync"
    SLOW_READ = "slow_read"
    FULL = "full"  # ENOSPC
    BROKEN = "broken"  # EIO
    READ_ONLY = "read_only"


@dataclass(frozen=True)
class DiskFault:
    harm: DiskHarm
    delay_ms: int = 0  # for the slow kinds
    topics_prefix: str = ""
    folder: str = ""  # the name of a log folder; empty: all of them


@dataclass(frozen=True)
class HeldRequests:
    """Requests to hold: from the first request of one of these kinds on, everything that a connection sends."""

    api_keys: tuple[int, ...]  # of the Kafka protocol, such as 26 for EndTxn
    lane: Lane = Lane.PRODUCE
    connections: int = 1  # number of connections that are held; others pass


@dataclass(frozen=True)
class Memory:
    """A node's memory as the kernel reports it, page cache included."""

    has_mb: float
    cache_mb: float  # the part that is page cache, which the kernel reclaims under pressure
    limit_mb: float | None
    refused: int  # how often the limit was reached, so that memory had to be reclaimed first
