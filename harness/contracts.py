"""Every contract on one page: what the author of a cluster, client, workload, fault or finder reads.

Powers are separate protocols: `isinstance(node, fault.needs)` decides whether a fault applies to a node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from harness.ledger.journal import Ledger
    from harness.ledger.message import Message
    from harness.ledger.transform import Transform
    from harness.reconcile.screen.summaries import Space, Why
    from harness.scenario import TopicSettings
    from harness.workers.counters import Counters


# --- values ---------------------------------------------------------------------------------------


class Outcome(IntEnum):
    """What is known about an attempt, a commit or the end of a transaction. Unknown is an answer."""

    UNKNOWN = 0
    ACKED = 1
    REJECTED = 2  # certainly not written


class Mode(StrEnum):
    """A delivery mode: how clients run, and which anomalies are forbidden then (harness.guarantees)."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    IDEMPOTENT = "idempotent"
    EXACTLY_ONCE = "exactly_once"


class Verdict(StrEnum):
    """VIOLATED outweighs INCONCLUSIVE, which outweighs HELD."""

    HELD = "HELD"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"


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
class Bite:
    """The measured proof that a fault took effect while it was held. Numbers go into `measured`."""

    bit: bool
    proof: str
    measured: Mapping[str, float] = field(default_factory=dict)
    way: str = ""  # which of the fault's ways was taken


@dataclass(frozen=True)
class Healing:
    """The measured proof that nothing of the fault is left."""

    healed: bool
    proof: str
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PartitionState:
    """One partition as a chosen broker sees it; `leader` is a node name or None while there is none."""

    topic: str
    partition: int
    leader: str | None
    leader_epoch: int
    replicas: tuple[str, ...]
    in_sync: tuple[str, ...]


@dataclass(frozen=True)
class BrokerPlace:
    """Where a broker is found by those who ask it by itself."""

    id: int
    control: tuple[str, int]  # its host and port in the control lane


class ProducerLost(Exception):
    """This producer is of no more use (fenced, fatal error): open a new one, which is a new session."""


@dataclass(frozen=True)
class Memory:
    """What the kernel tells of a node's memory, page cache included."""

    has_mb: float
    cache_mb: float  # of that: page cache, which it has to give back when there is no other
    limit_mb: float | None
    refused: int  # how often the limit was reached: nothing was given before something was taken back


# --- nodes and their powers -----------------------------------------------------------------------


@runtime_checkable
class Node(Protocol):
    """A broker, a controller, a ZooKeeper server or a worker process."""

    @property
    def name(self) -> str: ...


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


# --- clusters -------------------------------------------------------------------------------------


class View(Protocol):
    """Reads metadata. Answers come from a broker that is asked by itself, never from a cache."""

    def partitions(self, topic: str) -> Sequence[PartitionState]: ...
    def active_controller(self) -> str: ...
    def controllers(self) -> Sequence[str]: ...  # all that vote in the quorum
    def coordinator(self, key: str, *, transaction: bool) -> str | None: ...  # of a group or transactional id
    def registered_brokers(self) -> Sequence[str]: ...
    def broker_places(self) -> Mapping[str, BrokerPlace]: ...  # by node name, also those that are down
    def produce_round_trip_ms(self, broker: str) -> float: ...  # one small record, on the control lane


@runtime_checkable
class EnsembleView(View, Protocol):
    """Of a cluster with ZooKeeper: its controllers are the brokers, any of which can be the active one."""

    def zookeepers(self) -> Mapping[str, str]: ...  # by node name: leader, follower, or empty: serves nobody


class Cluster(Protocol):
    def start(self) -> None: ...  # returns when ready was observed
    def stop(self) -> None: ...
    def bootstrap_servers(self, lane: Lane) -> str: ...
    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        """What a client needs besides the address, as librdkafka calls it. Secrets: never write them down."""
        ...

    def nodes(self) -> Sequence[Node]: ...
    def view(self) -> View: ...
    def create_topic(
        self, name: str, settings: TopicSettings
    ) -> None: ...  # returns when it can be written to
    def delete_topic(self, name: str) -> None: ...
    def begin_logs(self) -> None: ...  # a run begins: collect_logs copies what is logged from now on
    def collect_logs(self, into: Path) -> None: ...
    def residue(self) -> Sequence[str]: ...  # what is left of faults, each in a few words
    def describe(self) -> Mapping[str, Any]: ...  # versions, sizes, settings: for the manifest


@runtime_checkable
class Shared(Protocol):
    """A cluster that others use too: of topics, groups and transactional ids only those with the prefix are ours."""

    @property
    def prefix(self) -> str: ...


@runtime_checkable
class ReplicaLogs(Protocol):
    """A cluster whose brokers' log files can be read from here, also those of brokers that are down."""

    def replica_folders(self, topic: str, partition: int) -> Mapping[str, Path]: ...  # by broker name


class Arena(Protocol):
    """A running run as faults and targets see it: the cluster, the workers, the topic under test."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def topic(self) -> str: ...
    @property
    def group(self) -> str: ...  # of the run's consumers
    def nodes(self) -> Sequence[Node]: ...  # of the cluster, then the workers


# --- clients and workloads ------------------------------------------------------------------------

# Called with seq, outcome, partition, offset (-1: none was told) and the library's error code. Five plain
# numbers and not an object: this is called once a record, on the hot path.
OnOutcome = Callable[[int, int, int, int, int], None]
OnAssignment = Callable[[str, list[int]], None]  # how (assigned, revoked, lost) and which partitions


class Producer(Protocol):
    """Raises ProducerLost from any call once it is of no more use."""

    def send(self, message: Message, on_outcome: OnOutcome) -> None: ...
    def poll(self, timeout_s: float) -> None: ...  # serves outcomes
    def flush(self, timeout_s: float) -> int: ...  # how many are still without an outcome
    def close(self) -> None: ...


@runtime_checkable
class Transactional(Protocol):
    """A producer that also has transactions. After UNKNOWN make a new producer, never try the end again."""

    def begin(self) -> None: ...
    def send_offsets(
        self, positions: Mapping[int, int], consumer: Consumer, timeout_s: float
    ) -> Outcome: ...  # of a member of a group; REJECTED: the group refuses them, abort the transaction
    def commit(self, timeout_s: float) -> Outcome: ...  # REJECTED: certainly not committed, abort it
    def abort(self, timeout_s: float) -> Outcome: ...
    @property
    def trouble(self) -> str: ...  # the name of what the last one met that was not acked, and more in words


@runtime_checkable
class Counting(Protocol):
    """A producer that tells how many partitions its topic has; those who name the partition themselves ask it."""

    def partitions(self, timeout_s: float) -> int: ...  # 0: nobody told in time


@dataclass(frozen=True)
class Batch:
    """What one poll gave: rows of harness.ledger.journal.DELIVERY, and where the reader stands now."""

    rows: npt.NDArray[np.void]
    positions: Mapping[int, int]  # partition -> offset after its last record in this batch
    ends: Mapping[int, int]  # partition -> its end, where the reader has reached it
    errors: Sequence[str]  # what the library reported besides records
    effects: npt.NDArray[np.void] | None = (
        None  # rows of harness.ledger.journal.EFFECT, if they were asked for
    )
    # What the library committed by itself since the last poll: positions, what became of it, and the error's name.
    commits: Sequence[tuple[Mapping[int, int], Outcome, str]] = ()


class Consumer(Protocol):
    def poll(self, timeout_s: float, at_most: int = 1000) -> Batch: ...
    def commit(self, positions: Mapping[int, int]) -> tuple[Outcome, str]: ...  # and the error's name
    def store(self, positions: Mapping[int, int]) -> None: ...  # for the library to commit in its own time
    def rewind(
        self, timeout_s: float
    ) -> (
        list[int] | None
    ): ...  # go on from what the group has committed, in these partitions; None: it is not told now
    def bounds(
        self, partition: int, timeout_s: float
    ) -> tuple[int, int]: ...  # log start; end for this isolation
    def close(self) -> None: ...


class Client(Protocol):
    """Adapter of one client library; its errors become outcomes in one table."""

    def open_producer(self, settings: ProducerSpec) -> Producer: ...
    def open_consumer(self, settings: ConsumerSpec, on_assignment: OnAssignment) -> Consumer: ...


@runtime_checkable
class Versioned(Protocol):
    """A client that tells what it runs with, as the loaded library itself says."""

    def versions(self) -> Mapping[str, str]: ...  # by the name of a package or library


@dataclass(frozen=True)
class ProducerSpec:
    """What a producer is opened with; `extra` are settings of the client library that win over the mode's."""

    bootstrap: str
    topic: str
    mode: Mode
    transactional_id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Cluster.client_settings
    more_topics: tuple[str, ...] = ()  # numbers 1, 2, … of the run; `topic` is number 0


@dataclass(frozen=True)
class ConsumerSpec:
    """What a consumer is opened with: a member of `group`, or by hand on `assign` (partition -> first offset)."""

    bootstrap: str
    topic: str
    run: int  # message.run_number of the run, to tell foreign messages
    mode: Mode
    isolation: str
    group: str = ""
    assign: Mapping[int, int] | None = None
    topic_number: int = 0
    effects: bool = False  # tell what records were made of
    check_crcs: bool = (
        False  # compare the checksum of each batch; the first record of a damaged one is BAD_HEADER
    )
    auto_commit: bool = False  # commit in its own time what was stored
    check_headers_every: int = (
        1  # the header of each n-th record is compared; reading headers is the dear part
    )
    extra: Mapping[str, Any] = field(default_factory=dict)
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Cluster.client_settings


class Role(Protocol):
    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None: ...


class Workload(Protocol):
    def roles(self) -> Sequence[Mapping[str, Any]]: ...  # one specification for each worker process
    def more_topics(self) -> Sequence[tuple[str, TopicSettings]]: ...  # besides the one that the group reads
    def transform(self) -> Transform | None: ...  # what a pipeline makes of its input; None: it is none


# --- faults ---------------------------------------------------------------------------------------


class Fault(Protocol):
    """What breaks. Whom is a Target's business, when is the Schedule's. docs/faults.md is made of these."""

    needs: ClassVar[type]
    ways: ClassVar[
        Mapping[str, str]
    ]  # how it is done, best first: the way's name, and what that needs on the machine
    bites_when: ClassVar[str]  # in words: what is measured while it is held

    def hold(self, arena: Arena, nodes: Sequence[Node]) -> AbstractContextManager[Bite]:
        """Break; yield once the effect was measured or its limit has passed; undo on the way out.

        The undo is registered before the act and is idempotent.
        """
        ...

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Called after the hold has ended: wait, within a limit, until nothing of it can be measured."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """The fault as data, for the manifest: its name and settings."""
        ...


# --- reconciliation -------------------------------------------------------------------------------


class Finder(Protocol):
    """Finds one anomaly in the rows of blocks that are not sound (harness.reconcile.screen.screen).

    It is called only when screening saw one of the reasons that wake it. How many items were compared (E9) is the sum
    of these counts of the screening, which sees every row.

    Its questions are methods from the tables of a subject (harness.reconcile.find.tables) to a table of findings, one or
    several of: of_positions, of_steps, of_messages, of_order, of_keys, of_transactions, of_history.
    """

    anomaly: ClassVar[str]
    asked_of: ClassVar[tuple[str, ...]]  # harness.reconcile.find.findings.LEDGER, HISTORY or both
    compared: ClassVar[tuple[str, ...]]  # names of harness.reconcile.screen.summaries.Count
    woken_by: ClassVar[Mapping[Space, Why]]

    def explain(self, row: Mapping[str, Any]) -> str: ...
