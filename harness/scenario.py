"""A scenario: the frozen description of one experiment, validated when it is made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from enum import StrEnum
from typing import Any

from harness import expectation
from harness.contracts import ConsumerOptions, Mode, ProducerOptions, TopicSettings, Verdict
from harness.kafka.client_settings import promised
from harness.kafka.load_settings import ConsumerSettings as ConsumerSettings
from harness.kafka.load_settings import ProducerSettings as ProducerSettings
from harness.kafka.load_settings import positive
from harness.ledger.transform import Transform
from harness.schedule import NO_FAULTS, Schedule

# Part of topic names, which have at most 249 characters: the prefix precedes it, the time and the topic's use follow.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,149}")


@dataclass(frozen=True)
class Timings:
    """Every limit of a run, in seconds."""

    warm_up_s: float = 0.5  # how long to run before the first window, counted from first progress
    warm_up_limit_s: float = 45.0
    cool_down_s: float = 0.5  # how long to run after the last heal, once progress is seen again
    recovery_limit_s: float = 45.0
    flush_limit_s: float = 40.0
    drain_limit_s: float = 60.0
    hanging_limit_s: float = 5.0  # for transactions that are open when all producers have ended
    final_read_limit_s: float = 60.0

    def __post_init__(self) -> None:
        positive("Timings", **asdict(self))


@dataclass(frozen=True)
class ChurnSettings:
    """Settings of the workload group_churn: when its members leave and join."""

    for_s: float = 10.0  # how long members leave and join; then they stay
    stay_s: float = 2.0  # approximate time between joining and leaving
    away_s: float = 0.5
    stall_s: float = 0.0  # above 0: instead of leaving, every other time a member stops polling for so long

    def __post_init__(self) -> None:
        positive("ChurnSettings", for_s=self.for_s, stay_s=self.stay_s, away_s=self.away_s)


class Pipeline(StrEnum):
    """The way a pipeline ties its output to its position in the input; only the first one is correct for exactly-once."""

    OFFSETS_IN_TRANSACTION = "offsets_in_transaction"
    OFFSETS_BY_CONSUMER = "offsets_by_consumer"  # transactional output, but the consumer commits separately
    RANDOM_IDS = "random_ids"  # each session has another transactional id and does not fence the one before
    NO_GROUP_METADATA = "no_group_metadata"  # offsets in the transaction, without the member that sends them
    NOT_REWOUND = "not_rewound"  # after an abort it reads on, instead of from the committed offsets


@dataclass(frozen=True)
class PipelineSettings:
    """Consume, transform, produce: several members of one group, each input with 0 to `most_effects` outputs."""

    members: int = 2
    most_effects: int = 2
    poison_share: float = 0.0  # share of the inputs that go to the dead letters instead
    inputs_per_transaction: int = 100  # at most
    aborted_share: float = 0.1  # transactions that are aborted on purpose
    kind: Pipeline = Pipeline.OFFSETS_IN_TRANSACTION
    output: TopicSettings = field(default_factory=TopicSettings)
    producer: ProducerOptions = field(default_factory=ProducerOptions)
    consumer: ConsumerOptions = field(default_factory=ConsumerOptions)  # besides those of Scenario.consumers

    def __post_init__(self) -> None:
        promised(Mode.AT_LEAST_ONCE, self.producer)  # refuse invalid values here, not in a worker
        positive("PipelineSettings", members=self.members,
                  inputs_per_transaction=self.inputs_per_transaction)  # fmt: skip
        if not 0 <= self.aborted_share < 1:
            raise ValueError(f"PipelineSettings.aborted_share: from 0 to below 1, not {self.aborted_share}")
        _ = self.transform  # raises ValueError for wrong settings of its own

    @property
    def transform(self) -> Transform:
        return Transform(self.most_effects, self.poison_share)


@dataclass(frozen=True)
class TransactionSettings:
    """`end_limit_s` applies to every transactional worker; the other fields only to transactional_produce."""

    # How long to wait for a commit or an abort. If the limit is shorter than request_timeout_ms a new producer
    # follows; if it is longer the library itself asks again (docs/findings/KAFKA-17754.md).
    end_limit_s: float = 30.0
    topics: int = 3  # written by each transaction
    spread_s: float = 0.0  # from the first to the last record of a transaction; 0: all at once
    timed_out_share: float = 0.0  # transactions whose producer sleeps until the coordinator has aborted them
    rivals: int = 0  # producers that from time to time take over the transactional id of another producer
    id_per_session: bool = False  # each session of a producer has an id of its own and fences no earlier one

    def __post_init__(self) -> None:
        positive("TransactionSettings", topics=self.topics, end_limit_s=self.end_limit_s)
        if self.spread_s < 0:
            raise ValueError(f"TransactionSettings.spread_s is 0 or more, not {self.spread_s}")
        if not 0 <= self.timed_out_share <= 1 or self.rivals < 0:
            raise ValueError(
                f"TransactionSettings: timed_out_share has to be from 0 to 1 and rivals 0 or more, "
                f"not {self.timed_out_share} and {self.rivals}"
            )


@dataclass(frozen=True)
class Scenario:
    """One experiment. `judged_as` differs from `mode` in controls that have to be VIOLATED.

    `requires` names the anomalies that the run must raise, each with the least number of findings: forbidden ones of a
    control that has to be VIOLATED, counted ones of a run that has to be HELD. `tolerates` names forbidden anomalies that
    may come along in a control. `forbids` names anomalies that the guarantee allows and that this application cannot
    tolerate. harness/expectation.py has the rule.
    """

    name: str
    mode: Mode
    schedule: Schedule = NO_FAULTS
    judged_as: Mode | None = None
    expected: Verdict = Verdict.HELD
    requires: Mapping[str, int] = field(default_factory=dict)
    tolerates: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    control: bool = False
    hazard: str = ""  # the id of the hazard that this control provokes, such as acks0_loss
    about: Mapping[str, str] = field(default_factory=dict)  # texts about the hazard, for the report
    workload: str = "produce_consume"
    client: str = "confluent"
    client_version: str = ""  # version of the library for producers and consumers; empty: the installed one
    topic: TopicSettings = field(default_factory=TopicSettings)
    producers: ProducerSettings = field(default_factory=ProducerSettings)
    consumers: ConsumerSettings = field(default_factory=ConsumerSettings)
    pipeline: PipelineSettings = PipelineSettings()
    transactions: TransactionSettings = TransactionSettings()
    churn: ChurnSettings = ChurnSettings()
    timings: Timings = Timings()
    produce_s: float = 4.0  # how long a run without faults produces
    observed: bool = False  # two observers, one of each isolation, read every topic during the run
    seed: int = 1

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                "Scenario.name: at most 150 of a-z, A-Z, 0-9, '_', '-', '.', not beginning with '-' or '.'; "
                f"not {self.name[:300]!r}"
            )
        positive("Scenario", produce_s=self.produce_s)
        expectation.check(self.expected, self.guarantee, self.requires, self.tolerates, self.forbids)
        if self.consumers.auto_commit and self.mode is Mode.AT_MOST_ONCE:
            raise ValueError(
                "Scenario: at_most_once commits before it works, ConsumerSettings.auto_commit after it"
            )
        if self.observed and self.consumers.isolation != "read_committed":
            # Jumps of all readers are judged by the log that the group reads; an observer with read_committed skips
            # aborted records by design.
            raise ValueError(
                f"Scenario.observed needs a group that reads read_committed, not {self.consumers.isolation}"
            )

    @property
    def guarantee(self) -> Mode:
        return self.judged_as or self.mode

    @property
    def fault_name(self) -> str:
        """The faults for tables: `kill-leader` or `none`; if there are many, only their number."""
        names = list(dict.fromkeys(f"{w.fault}-{w.on}" for w in self.schedule))
        return "+".join(names) or "none" if len(names) <= _MOST_NAMED else f"{len(names)} different faults"

    def with_seed(self, seed: int) -> Scenario:
        return replace(self, seed=seed)

    def describe(self) -> dict[str, Any]:
        """Return the scenario as data, for the manifest."""
        parts = {
            name: asdict(value)
            for name, value in vars(self).items()
            if is_dataclass(value) and not isinstance(value, type)
        }
        plain = {name: value for name, value in vars(self).items() if name not in ("schedule", *parts)}
        return {
            **plain,
            "requires": dict(self.requires),
            "tolerates": list(self.tolerates),
            "forbids": list(self.forbids),
            "guarantee": self.guarantee,
            "fault": self.fault_name,
            "schedule": [w.describe() for w in self.schedule],
            **{name: _set_values(part) for name, part in parts.items()},
        }


def _set_values(described: dict[str, Any]) -> dict[str, Any]:
    """Return the description without options of clients that are not set."""
    parts: dict[str, Any] = {
        name: _set_values(described[name]) for name in ("producer", "consumer") if name in described
    }
    if "each" in described:
        parts["each"] = [_set_values(options) for options in described["each"]]
    return {name: value for name, value in (described | parts).items() if value is not None}


_MOST_NAMED = 4  # faults
