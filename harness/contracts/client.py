"""The adapter of one client library: producers, consumers and what they are opened with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
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
    """A producer. Any call raises ProducerLost once it can no longer be used.

    Outcomes are reported in the thread of the caller, during `send`, `poll` and `flush`.
    """

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
    """The result of one poll: rows of harness.ledger.rows.DELIVERY, and the positions of the reader."""

    rows: npt.NDArray[np.void]
    positions: Mapping[int, int]  # partition -> offset after its last record in this batch
    ends: Mapping[int, int]  # partition -> its end, if the reader has reached it
    errors: Sequence[str]  # reported by the library
    effects: npt.NDArray[np.void] | None = None  # rows of harness.ledger.rows.EFFECT, if they were asked for
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


@dataclass(frozen=True, kw_only=True)
class ProducerOptions:
    """Settings of a producer in one vocabulary, which each adapter translates. None: what the mode sets.

    `extra` has what only one library has, in its names, and takes precedence.
    """

    acks: str | None = None  # "0", "1" or "all"
    retries: int | None = None
    in_flight: int | None = None  # requests to a broker that have no answer yet
    idempotent: bool | None = None
    linger_ms: int | None = None
    batch_bytes: int | None = None
    compression: str | None = None
    partitioner: str | None = None  # by a hash of the key; murmur2: as Java clients
    delivery_timeout_ms: int | None = None  # of a record, all tries together
    request_timeout_ms: int | None = None  # until the library gives up a request, and maybe asks again
    transaction_timeout_ms: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.acks is not None:
            object.__setattr__(self, "acks", "all" if str(self.acks) == "-1" else str(self.acks))
        _check(
            self,
            acks=("0", "1", "all"),
            idempotent=(True, False),
            compression=("none", "gzip", "snappy", "lz4", "zstd"),
            partitioner=("murmur2", "crc32", "fnv1a", "random"),
        )

    def options(self) -> ProducerOptions:
        """Return only the options, for classes that have more."""
        return ProducerOptions(**given(self), extra=self.extra)

    def updated(self, other: ProducerOptions) -> ProducerOptions:
        """Return these options with those that `other` sets."""
        return ProducerOptions(**{**given(self), **given(other)}, extra={**self.extra, **other.extra})


@dataclass(frozen=True, kw_only=True)
class ConsumerOptions:
    """Settings of a consumer, as `ProducerOptions` has them of a producer."""

    session_timeout_ms: int | None = None
    poll_interval_ms: int | None = None  # a member that polls less often is removed from its group
    assignor: str | None = None
    group_protocol: str | None = None
    reset: str | None = None  # where to begin without a committed offset
    store_when_given: bool | None = None  # with auto_commit: True commits records before they are worked on
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(
            self,
            assignor=("range", "roundrobin", "sticky", "cooperative-sticky"),
            group_protocol=("classic", "consumer"),
            reset=("earliest", "latest", "none"),
            store_when_given=(True, False),
        )
        if self.group_protocol == "consumer" and self.session_timeout_ms is not None:
            raise ValueError(
                f"{type(self).__name__}.session_timeout_ms: with group_protocol='consumer' the brokers set it, "
                "by group.consumer.session.timeout.ms"
            )

    def options(self) -> ConsumerOptions:
        """Return only the options, for classes that have more."""
        return ConsumerOptions(**given(self), extra=self.extra)

    def updated(self, other: ConsumerOptions) -> ConsumerOptions:
        """Return these options with those that `other` sets."""
        return ConsumerOptions(**{**given(self), **given(other)}, extra={**self.extra, **other.extra})


def given(options: ProducerOptions | ConsumerOptions) -> dict[str, Any]:
    """Return the options that are set, without `extra`."""
    kind = ProducerOptions if isinstance(options, ProducerOptions) else ConsumerOptions
    values = {one.name: getattr(options, one.name) for one in fields(kind) if one.name != "extra"}
    return {name: value for name, value in values.items() if value is not None}


def _check(options: ProducerOptions | ConsumerOptions, **choices: tuple[str, ...] | tuple[bool, ...]) -> None:
    """Raise ValueError for an option that is none of its choices, or no number of 0 or more."""
    for name, value in given(options).items():
        place, known = f"{type(options).__name__}.{name}", choices.get(name)
        if known is None and (type(value) is not int or value < 0):
            raise ValueError(f"{place}: a whole number of 0 or more, not {value!r}")
        if known is not None and (type(value) is not type(known[0]) or value not in known):
            raise ValueError(f"{place}: one of {', '.join(map(str, known))}; not {value!r}")


@runtime_checkable
class Checking(Protocol):
    """A client that can say before a run whether its library has a setting for each option."""

    @staticmethod
    def check_options(
        options: ProducerOptions | ConsumerOptions,
    ) -> None: ...  # raises UsageError for a value that the library does not have


@dataclass(frozen=True)
class ProducerSpec:
    """The settings that a producer is opened with; `options` take precedence over the mode's settings."""

    bootstrap: str
    topic: str
    mode: Mode
    transactional_id: str = ""
    options: ProducerOptions = ProducerOptions()
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Cluster.client_settings
    more_topics: tuple[str, ...] = ()  # numbers 1, 2, … of the run; `topic` is number 0


@dataclass(frozen=True)
class ConsumerSpec:
    """The settings that a consumer is opened with: a member of `group`, or manually assigned by `assign` (partition -> first offset)."""

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
    instance_id: str = ""  # of a static member, which keeps its partitions over a restart
    options: ConsumerOptions = ConsumerOptions()
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Cluster.client_settings
