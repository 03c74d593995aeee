"""The adapter of one client library: producers, consumers and their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.contracts.outcomes import Mode, Outcome

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from harness.ledger.message import Message


# Called with seq, outcome, partition, offset (-1: not reported) and the library's error code. Five plain
# numbers and not an object: this is called once a record, on the hot path.
OnOutcome = Callable[[int, int, int, int, int], None]


OnAssignment = Callable[[str, list[int]], None]  # how (assigned, revoked, lost) and which partitions


class ProducerLost(Exception):
    """This producer can no longer be used (fenced, fatal error): open a new one, which is a new session."""


class Producer(Protocol):
    """A producer. Any call raises ProducerLost once it can no longer be used."""

    def send(self, message: Message, on_outcome: OnOutcome) -> None: ...
    def poll(self, timeout_s: float) -> None: ...  # serves outcomes
    def flush(self, timeout_s: float) -> int: ...  # returns the number of records without an outcome
    def close(self) -> None: ...


@runtime_checkable
class Transactional(Protocol):
    """A producer with transactions. After UNKNOWN open a new producer; never retry the end of the transaction."""

    def begin(self) -> None: ...
    def send_offsets(
        self, positions: Mapping[int, int], consumer: Consumer, timeout_s: float
    ) -> Outcome: ...  # `consumer`, of the same library, is a member of a group; REJECTED: the group refuses them, abort the transaction
    def commit(self, timeout_s: float) -> Outcome: ...  # REJECTED: certainly not committed, abort it
    def abort(self, timeout_s: float) -> Outcome: ...
    @property
    def trouble(self) -> str: ...  # name and text of the last error


@runtime_checkable
class Counting(Protocol):
    """A producer that reports the number of partitions of its topic, for workers that choose the partition themselves."""

    def partitions(self, timeout_s: float) -> int: ...  # 0: no answer in time


@dataclass(frozen=True)
class Batch:
    """The result of one poll: rows of harness.ledger.journal.DELIVERY, and the positions of the reader."""

    rows: npt.NDArray[np.void]
    positions: Mapping[int, int]  # partition -> offset after its last record in this batch
    ends: Mapping[int, int]  # partition -> its end, if the reader has reached it
    errors: Sequence[str]  # reported by the library
    effects: npt.NDArray[np.void] | None = (
        None  # rows of harness.ledger.journal.EFFECT, if they were asked for
    )
    # Automatic commits of the library since the last poll: positions, outcome, and the error's name.
    commits: Sequence[tuple[Mapping[int, int], Outcome, str]] = ()


class Consumer(Protocol):
    def poll(self, timeout_s: float, at_most: int = 1000) -> Batch: ...
    def commit(self, positions: Mapping[int, int]) -> tuple[Outcome, str]: ...  # and the error's name
    def store(self, positions: Mapping[int, int]) -> None: ...  # for the library to commit in its own time
    def offsets_for_transaction(
        self, positions: Mapping[int, int]
    ) -> Any: ...  # the positions and the member, as `Transactional.send_offsets` of this library needs them
    def rewind(
        self, timeout_s: float
    ) -> (
        list[int] | None
    ): ...  # go back to the committed offsets; returns the partitions, or None: no answer now
    def bounds(
        self, partition: int, timeout_s: float
    ) -> tuple[int, int]: ...  # log start; end for this isolation
    def close(self) -> None: ...


class Client(Protocol):
    """The adapter of one client library; one table translates its errors to outcomes."""

    def open_producer(self, settings: ProducerSpec) -> Producer: ...
    def open_consumer(self, settings: ConsumerSpec, on_assignment: OnAssignment) -> Consumer: ...


@runtime_checkable
class Versioned(Protocol):
    """A client that reports the versions of its libraries, as the loaded libraries report them."""

    def versions(self) -> Mapping[str, str]: ...  # by the name of a package or library


@dataclass(frozen=True)
class ProducerSpec:
    """The settings of a producer; `extra` are settings of the client library that take precedence over the mode's."""

    bootstrap: str
    topic: str
    mode: Mode
    transactional_id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Cluster.client_settings
    more_topics: tuple[str, ...] = ()  # numbers 1, 2, … of the run; `topic` is number 0


@dataclass(frozen=True)
class ConsumerSpec:
    """The settings of a consumer: a member of `group`, or manually assigned by `assign` (partition -> first offset)."""

    bootstrap: str
    topic: str
    run: int  # message.run_number of the run, to recognise foreign messages
    mode: Mode
    isolation: str
    group: str = ""
    assign: Mapping[int, int] | None = None
    topic_number: int = 0
    effects: bool = False  # also return the origins of effects
    check_crcs: bool = (
        False  # compare the checksum of each batch; the first record of a damaged batch is BAD_HEADER
    )
    auto_commit: bool = False  # commit stored offsets automatically
    compare_every: int = 1  # of full batches compare key, time and header of each n-th record only
    extra: Mapping[str, Any] = field(default_factory=dict)
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Cluster.client_settings
