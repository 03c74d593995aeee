"""The adapter of one client library: producers, consumers, and what they are opened with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.contracts.outcomes import Mode, Outcome

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from harness.ledger.message import Message


# Called with seq, outcome, partition, offset (-1: none was told) and the library's error code. Five plain
# numbers and not an object: this is called once a record, on the hot path.
OnOutcome = Callable[[int, int, int, int, int], None]


OnAssignment = Callable[[str, list[int]], None]  # how (assigned, revoked, lost) and which partitions


class ProducerLost(Exception):
    """This producer is of no more use (fenced, fatal error): open a new one, which is a new session."""


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
