"""The producers and consumers of a scenario, as applications use them: frozen data, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contracts import ConsumerOptions, Mode, ProducerOptions
from harness.kafka.client_settings import canonical, promised
from harness.ledger.message import MIN_LENGTH


def positive(owner: str, **values: float) -> None:
    """Raise ValueError, which names the setting, for a value that is not greater than 0."""
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"{owner}.{name} has to be greater than 0, not {value}")


@dataclass(frozen=True)
class ProducerSettings(ProducerOptions):
    """Producers as applications use them: several, keyed and keyless, batching, several requests in flight."""

    keyed: int = 1  # producers that send keys and let the client choose the partition
    keyless: int = 1  # producers that name the partition themselves
    records_per_s: int = 2000  # of each producer
    payload_bytes: int = 128
    keys: int = 64
    records_per_transaction: int = 100  # exactly-once only
    aborted_share: float = 0.1  # exactly-once only: transactions that are aborted on purpose
    age_s: float = 0.0  # how far in the past the create times of records are, as of data that is loaded later
    sends_again: bool = (
        False  # the application sends a record again, as a new message, if its outcome is unknown
    )
    each: tuple[ProducerOptions, ...] = ()  # options of producer 1, 2, … that differ from those of all

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "extra", canonical(self.extra, "ProducerSettings.extra"))
        if len(self.each) > self.keyed + self.keyless:
            raise ValueError(
                f"ProducerSettings.each has options of {len(self.each)} producers; there are {self.keyed + self.keyless}"
            )
        for options in (self, *self.each):
            promised(Mode.AT_LEAST_ONCE, options)  # refuse invalid values here, not in a worker
        if self.age_s < 0:
            raise ValueError(f"ProducerSettings.age_s is 0 or more, not {self.age_s}")
        positive("ProducerSettings", records_per_s=self.records_per_s, keys=self.keys,
                  records_per_transaction=self.records_per_transaction)  # fmt: skip
        if self.keyed < 0 or self.keyless < 0 or self.keyed + self.keyless == 0:
            raise ValueError("ProducerSettings: at least one keyed or keyless producer is needed")
        if self.payload_bytes < MIN_LENGTH or self.payload_bytes % 8:
            raise ValueError(
                f"ProducerSettings.payload_bytes: a multiple of 8, at least {MIN_LENGTH}, not {self.payload_bytes}"
            )
        if not 0 <= self.aborted_share <= 1:
            raise ValueError(f"ProducerSettings.aborted_share lies between 0 and 1, not {self.aborted_share}")

    def options_of(self, number: int) -> ProducerOptions:
        """Return the options of the producer with this number, from 1 on."""
        own = self.each[number - 1] if number <= len(self.each) else ProducerOptions()
        return self.options().updated(own)


@dataclass(frozen=True)
class ConsumerSettings(ConsumerOptions):
    members: int = 2
    isolation: str = "read_committed"
    static: bool = False  # each member has a group.instance.id and keeps its partitions over a restart
    auto_commit: bool = False  # the library commits the processed records in its own time

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "extra", canonical(self.extra, "ConsumerSettings.extra"))
        positive("ConsumerSettings", members=self.members)
        if self.isolation not in ("read_committed", "read_uncommitted"):
            raise ValueError(
                f"ConsumerSettings.isolation: read_committed or read_uncommitted, not {self.isolation!r}"
            )
