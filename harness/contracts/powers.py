"""Powers over a node, each a protocol: `isinstance(node, fault.needs)` decides whether a fault applies to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from harness.contracts.nodes import (
    Cut,
    Direction,
    DiskFault,
    DiskHarm,
    HeldRequests,
    Link,
    Memory,
    Node,
    Questions,
    Talk,
    Toxic,
)
from harness.contracts.workload import Counters


@runtime_checkable
class Limited(Node, Protocol):
    """A node that says why it does not have other powers."""

    @property
    def lacks(self) -> Mapping[type, str]: ...  # by protocol: the reason and the remedy


@runtime_checkable
class Killable(Node, Protocol):
    def kill(self) -> None: ...  # returns when the process is gone
    def restart(self) -> None: ...  # idempotent: does nothing to a node that runs
    def running(self) -> bool: ...


@runtime_checkable
class Stoppable(Killable, Protocol):
    def shut_down(self, limit_s: float = 60.0) -> int:
        """Stop in an orderly way, as an operator does; return the exit code. Raises WaitTimeout if the process stays."""
        ...


@runtime_checkable
class Upgradable(Stoppable, Protocol):
    """A node that can run another version of Kafka; after the features of the cluster were raised there is no way back."""

    def upgrade(self, version: str, limit_s: float = 60.0) -> int:
        """Stop the node in an orderly way, start it as that version, and wait until it has rejoined; return the exit code of the stop.

        Raises WaitTimeout if the old process does not end.
        """
        ...

    def version(self) -> str: ...  # as the node has reported since its last start; "unknown": not yet
    def features(
        self,
    ) -> Mapping[str, tuple[int, int]]: ...  # lowest and highest level of each feature that it supports


@runtime_checkable
class Pausable(Node, Protocol):
    def pause(self) -> None: ...
    def resume(self) -> None: ...  # idempotent
    def paused(self) -> bool: ...  # as the kernel reports


@runtime_checkable
class PausableAndKillable(Pausable, Killable, Protocol):
    """A node that can be paused and then killed, so that it reads nothing in between."""


@runtime_checkable
class Severable(Node, Protocol):
    def links(self) -> Sequence[Link]: ...  # every link that starts or ends here, client lanes included
    def sever(self, cuts: Sequence[Cut], by: str = "") -> None: ...  # `by`: owner of the cuts
    def mend(self, by: str | None = None) -> None: ...  # idempotent; None: the cuts of all owners
    def passes(self, link: Link) -> Mapping[Direction, bool]: ...  # a probe: do bytes get through, each way?


@runtime_checkable
class PeerSeverable(Severable, Protocol):
    """A node whose links with other nodes can be cut, not only those with clients."""

    def peer_links(self) -> Sequence[Link]: ...  # those of `links` that connect two nodes


@runtime_checkable
class Shapeable(Severable, Protocol):
    def shapeable_links(self) -> Sequence[Link]: ...  # links that can be shaped
    def shape(self, links: Sequence[Link], toxics: Sequence[Toxic], by: str = "") -> None: ...
    def unshape(self, by: str | None = None) -> None: ...  # idempotent; None: the toxics of all owners
    def talk(self, link: Link, questions: Questions) -> Talk: ...  # a probe on a new connection
    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> AbstractContextManager[Callable[[float], bool]]:
        """Send a request through the link that the partition's leader answers only after `wait_s`.

        The context gives a function that waits for the answer, up to a number of seconds, and returns True if it came.
        """
        ...


@runtime_checkable
class RequestHolding(Node, Protocol):
    def hold_requests(self, how: HeldRequests) -> None: ...
    def release_requests(
        self,
    ) -> None: ...  # idempotent: delivers the held requests, in order, even if their sender has gone
    def held_requests(
        self,
    ) -> Mapping[str, int]: ...  # connections and requests that are held now, and in total


@runtime_checkable
class DiskBreakable(Node, Protocol):
    def break_disk(self, how: DiskFault) -> str: ...  # returns the way that was used: fuse, byteman, …
    def mend_disk(self, harm: DiskHarm | None = None) -> None: ...  # idempotent; None: all kinds
    def disk_latency_ms(
        self, harm: DiskHarm
    ) -> float: ...  # a probe of this kind, inside the broker's folder; reads: `ReadSlowable`


@runtime_checkable
class ReadSlowable(DiskBreakable, Protocol):
    """A broker that can serve reads late, also of records in memory: `break_disk` with slow_read."""

    def read_latency_ms(self) -> float: ...  # a probe: reads a record that the broker has in memory


@runtime_checkable
class DiskThrottleable(Node, Protocol):
    """A broker whose disk throughput can be limited; access to the page cache stays quick."""

    def throttle_disk(
        self, harm: DiskHarm, rate_kb_s: int
    ) -> str: ...  # slow_fsync or slow_read; returns the way that was used: blkio
    def release_disk(self, harm: DiskHarm) -> None: ...  # idempotent
    def disk_rate_kb_s(
        self, harm: DiskHarm, size_kb: int
    ) -> float: ...  # a probe of this kind with so many KB at once


@runtime_checkable
class FolderBreakable(DiskBreakable, Stoppable, Protocol):
    """A broker that keeps its logs in several folders."""

    def folders(self) -> Sequence[str]: ...  # by name; the metadata is in the first
    def partitions_in(self, folder: str) -> Collection[str]: ...  # as the disk shows, such as orders-0
    def append_to(self, folder: str) -> None: ...  # a probe; raises ClusterError if the record is refused


@runtime_checkable
class PowerLosable(Killable, Protocol):
    def lose_power(
        self,
    ) -> Mapping[str, float]: ...  # kills the node and drops data that was not fsynced; returns how much


@runtime_checkable
class Skewable(Node, Protocol):
    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None: ...
    def right_clock(self) -> None: ...  # idempotent
    def clock_offset_s(self) -> float: ...  # a probe: the node's wall clock against this machine's


@runtime_checkable
class Starvable(Node, Protocol):
    def starve(self, cpu_share: float) -> str: ...  # returns the way that was used: cgroup, signals
    def feed(self) -> None: ...  # idempotent
    def cpu_under_load(self, for_s: float) -> float:
        """Return how many processors the node used under more load than it can handle: a probe."""
        ...


@runtime_checkable
class MemoryStarvable(Node, Protocol):
    def take_memory(
        self, left_mb: float
    ) -> str: ...  # leaves at most so much beside unreclaimable memory; returns the way that was used: cgroup
    def give_memory(self) -> None: ...  # idempotent
    def memory_under_load(
        self, for_s: float
    ) -> Memory: ...  # a probe: `refused` counts only during its load, which is more than the node can handle


@runtime_checkable
class WorkerNode(Killable, Pausable, Protocol):
    """A worker process: a client of the cluster that reports its progress."""

    @property
    def role(self) -> str: ...
    @property
    def transactional_id(self) -> str: ...  # empty: not transactional
    @property
    def stays_in_group(
        self,
    ) -> bool: ...  # a member of the run's group that only reads, and does not come and go
    @property
    def client_settings(
        self,
    ) -> Mapping[str, Any]: ...  # of its consumer, in librdkafka's names, as the scenario sets them
    def counters(self) -> Counters: ...  # the sum over all its incarnations
    def worked_on(
        self,
    ) -> Mapping[int, int]: ...  # by partition of the run's topic: the end of what this process has worked on
    def stop_at(
        self, moment: str
    ) -> None: ...  # ask it to wait at the next such moment (harness.workers.breakpoints)
    def waits(self) -> bool: ...  # True while it waits at that moment
    def go_on(self) -> None: ...  # does nothing if it does not wait


# What can be done to a node of a cluster; those that end its process come first. The other protocols here combine these or
# are of workers.
POWERS: tuple[type, ...] = (
    Killable,
    Stoppable,
    Upgradable,
    PowerLosable,
    FolderBreakable,
    Pausable,
    DiskBreakable,
    ReadSlowable,
    DiskThrottleable,
    Severable,
    PeerSeverable,
    Shapeable,
    RequestHolding,
    Skewable,
    Starvable,
    MemoryStarvable,
)
