"""A workload: the specifications of a run's workers, and the counters that each worker shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harness.contracts.client import ConsumerOptions, ProducerOptions
from harness.contracts.cluster import TopicSettings
from harness.contracts.nodes import Lane
from harness.contracts.outcomes import Mode

if TYPE_CHECKING:
    from harness.ledger.transform import Transform


@dataclass(frozen=True)
class Counters:
    attempted: int = 0
    acked: int = 0
    failed: int = 0  # rejected or unknown
    delivered: int = 0
    committed: int = 0
    sessions: int = 0

    def plus(self, **more: int) -> Counters:
        return Counters(**{name: value + more.get(name, 0) for name, value in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class WorkerSpec:
    """The specification of a worker process: what all workers have. Each role has a subclass in its file, with the rest.

    `harness/workers/spec_file.py` writes it to a file for the process, and reads it there.
    """

    role: ClassVar[str]  # the name of its file in harness/workers/roles
    sends: ClassVar[bool] = False  # in sessions, with a number; a worker that only sends makes the load
    reads: ClassVar[bool] = False  # as a member of the run's group
    observes: ClassVar[bool] = False  # reads beside the group: no part of the run's progress
    shares: ClassVar[bool] = False  # the run's group is a share group, and this is a member
    stays_in_group: ClassVar[bool] = False  # only reads, and stays: `rebalance` can count such members
    ends_by_itself: ClassVar[bool] = False  # the others work until they are asked to stop

    # By the workload:
    name: str
    mode: Mode
    lane: Lane  # chooses its links to the brokers
    # By the harness, for the run:
    client: str = "confluent"
    client_version: str = ""  # empty: the installed one
    run: int = 0  # message.run_number
    bootstrap: str = ""
    fake_clock: bool = False
    # By the harness, for each life of the process:
    writer: str = ""
    ledger: str = ""  # a folder
    board: str = ""
    incarnation: int = 0  # of its first session (harness.workers.session_numbers)
    security_on_stdin: bool = False
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # may be secret: never in a file


@dataclass(frozen=True, kw_only=True)
class SenderSpec(WorkerSpec):
    """The specification of a worker that sends records in producer sessions."""

    sends: ClassVar[bool] = True

    number: int  # from 1 on, and no other sender of the run has it: part of the numbers of its sessions
    topic: str
    partitions: int  # of the topics that it writes
    payload_bytes: int
    seed: int
    more_topics: tuple[str, ...] = ()  # numbers 1, 2, … of the run; `topic` is number 0
    keyed: bool = True  # the client chooses the partition by the key; False: the worker chooses it
    keys: int = 1  # number of different keys
    producer: ProducerOptions = field(default_factory=ProducerOptions)
    age_s: float = 0.0  # how far in the past the create times of its records are
    sends_again: bool = False  # a record whose outcome is unknown, as a new message

    @property
    def transactional_id(self) -> str:
        """The id, the same for all its incarnations, so that a new one fences the old one. Empty: not transactional."""
        return f"{self.topic}-{self.name}" if self.mode is Mode.EXACTLY_ONCE else ""

    @property
    def has_id_per_session(self) -> bool:
        """True: each session has its own transactional id and fences no other one, a mistake in applications."""
        return False


@dataclass(frozen=True, kw_only=True)
class MemberSpec(WorkerSpec):
    """The specification of a worker that reads the topic under test as a member of the run's group."""

    reads: ClassVar[bool] = True

    topic: str
    group: str
    isolation: str
    instance_id: str = ""  # of a static member
    consumer: ConsumerOptions = field(default_factory=ConsumerOptions)


@dataclass(frozen=True)
class TopicToRead:
    """A topic that is read whole, from its first record on."""

    name: str
    partitions: int


class Workload(Protocol):
    def roles(self) -> Sequence[WorkerSpec]: ...  # one for each worker process
    def more_topics(
        self,
    ) -> Sequence[tuple[str, TopicSettings]]: ...  # besides the topic that the group reads
    def transform(self) -> Transform | None: ...  # of a pipeline's input to its output; None: not a pipeline
