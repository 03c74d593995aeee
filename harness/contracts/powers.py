"""What can be done to a node, each power a protocol: `isinstance(node, fault.needs)` decides whether a fault applies to it."""

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
class Killable(Node, Protocol):
    def kill(self) -> None: ...  # returns when the process is gone
    def restart(self) -> None: ...  # idempotent: does nothing to a node that runs
    def running(self) -> bool: ...


@runtime_checkable
class Stoppable(Killable, Protocol):
    def shut_down(self, limit_s: float = 60.0) -> int:
        """In order, as an operator does it; the exit code. Raises WaitTimeout if the process stays."""
        ...


@runtime_checkable
class Upgradable(Stoppable, Protocol):
    """It can run another version of Kafka; there is no way back once the features of the cluster were raised."""

    def upgrade(self, version: str, limit_s: float = 60.0) -> int:
        """Stop it in order, start it as that version; returns when it takes part again, the exit code of the stop.

        Raises WaitTimeout if the process stays, which then is the old one still.
        """
        ...

    def version(self) -> str: ...  # as the node itself has told since it was last started; unknown: not yet
    def features(
        self,
    ) -> Mapping[str, tuple[int, int]]: ...  # lowest and highest level of each that it supports


@runtime_checkable
class Pausable(Node, Protocol):
    def pause(self) -> None: ...
    def resume(self) -> None: ...  # idempotent
    def paused(self) -> bool: ...  # as the kernel tells


@runtime_checkable
class PausableAndKillable(Pausable, Killable, Protocol):
    """A node that can be stopped and then killed, without a chance to read anything in between."""


@runtime_checkable
class Severable(Node, Protocol):
    def links(self) -> Sequence[Link]: ...  # every link that starts or ends here, client lanes included
    def sever(self, cuts: Sequence[Cut], by: str = "") -> None: ...  # `by`: whose cuts these are
    def mend(self, by: str | None = None) -> None: ...  # idempotent; None: whosever they are
    def passes(self, link: Link) -> Mapping[Direction, bool]: ...  # a probe: do bytes get through, each way?


@runtime_checkable
class Shapeable(Severable, Protocol):
    def shapeable_links(self) -> Sequence[Link]: ...  # those of its links for which this is possible
    def shape(self, links: Sequence[Link], toxics: Sequence[Toxic], by: str = "") -> None: ...
    def unshape(self, by: str | None = None) -> None: ...  # idempotent; None: whosever they are
    def talk(self, link: Link, questions: Questions) -> Talk: ...  # a probe on a connection of its own
    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> AbstractContextManager[Callable[[float], bool]]:
        """Ask now, through the link, what the partition's leader answers only after `wait_s`.

        The call that is given waits for that answer, so many seconds at most, and says whether it has come.
        """
        ...


@runtime_checkable
class RequestHolding(Node, Protocol):
    def hold_requests(self, how: HeldRequests) -> None: ...
    def release_requests(
        self,
    ) -> None: ...  # idempotent: delivers what was held, in order, also for senders that left
    def held_requests(
        self,
    ) -> Mapping[str, int]: ...  # connections and requests that are held now, and were so far


@runtime_checkable
class DiskBreakable(Node, Protocol):
    def break_disk(self, how: DiskFault) -> str: ...  # the way that was taken: fuse, byteman, …
    def mend_disk(self, harm: DiskHarm | None = None) -> None: ...  # idempotent; None: all that is wrong
    def disk_latency_ms(
        self, harm: DiskHarm
    ) -> float: ...  # a probe of the very thing, inside the broker's folder


@runtime_checkable
class DiskThrottleable(Node, Protocol):
    """A broker that gets no more than so many KB a second to its disk or from it; what stays in memory is as quick as ever."""

    def throttle_disk(
        self, harm: DiskHarm, rate_kb_s: int
    ) -> str: ...  # slow_fsync or slow_read; the way that was taken: blkio
    def release_disk(self, harm: DiskHarm) -> None: ...  # idempotent
    def disk_rate_kb_s(
        self, harm: DiskHarm, size_kb: int
    ) -> float: ...  # a probe of the very thing with so many KB at once


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
    ) -> Mapping[str, float]: ...  # dies and forgets what was not fsynced; how much that was


@runtime_checkable
class Skewable(Node, Protocol):
    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None: ...
    def right_clock(self) -> None: ...  # idempotent
    def clock_offset_s(self) -> float: ...  # a probe: the node's wall clock against this machine's


@runtime_checkable
class Starvable(Node, Protocol):
    def starve(self, cpu_share: float) -> str: ...  # the way that was taken: cgroup, signals
    def feed(self) -> None: ...  # idempotent
    def cpu_under_load(self, for_s: float) -> float:
        """A probe: how many processors it used while it was asked for more work than it can do."""
        ...


@runtime_checkable
class MemoryStarvable(Node, Protocol):
    def take_memory(
        self, left_mb: float
    ) -> str: ...  # leaves at most so much beside what it cannot give back; the way that was taken: cgroup
    def give_memory(self) -> None: ...  # idempotent
    def memory_under_load(
        self, for_s: float
    ) -> Memory: ...  # a probe: `refused` counts only while it was asked for more work than it can do


@runtime_checkable
class WorkerNode(Killable, Pausable, Protocol):
    """A worker process: a client of the cluster that shows what it has done."""

    @property
    def role(self) -> str: ...
    @property
    def transactional_id(self) -> str: ...  # empty: it has none
    @property
    def client_settings(self) -> Mapping[str, Any]: ...  # of its library, where the scenario names some
    def counters(self) -> Counters: ...  # of all its incarnations together
    def stop_at(
        self, moment: str
    ) -> None: ...  # wait there when it comes to it next (harness.workers.breakpoints)
    def waits(self) -> bool: ...  # whether it does
    def go_on(self) -> None: ...  # also of one that does not wait
