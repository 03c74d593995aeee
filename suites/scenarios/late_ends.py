"""Scenarios of a late EndTxn (KAFKA-17754, docs/findings/KAFKA-17754.md). Pure data.

The request that ends one transaction arrives in the middle of a later one, long after the client library has asked again and
has reported success.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from faults.hold_requests import HoldRequests
from faults.late_requests import LateRequests
from harness.contracts import Lane, Mode, ProducerOptions, Verdict
from harness.scenario import (
    ConsumerSettings,
    PipelineSettings,
    ProducerSettings,
    Scenario,
    Timings,
    TransactionSettings,
)
from harness.schedule import Schedule, every, once
from harness.targets import Target, transaction_coordinator
from harness.workers.breakpoints import Moment

GIVES_UP_MS = 3000  # the library asks again when it had no answer for so long; its default is 60 s
# The application gives up first, uses a new producer for the next transaction, and never lets the library ask again.
CURED = TransactionSettings(topics=2, end_limit_s=1.5)
CURED_MS = 30000

# Texts of the three hazards.
GIVES_UP = "transactional producers, brokers and clients without the transaction protocol of KIP-890 part 2, and librdkafka up to 2.16"
USE_A_NEW_PRODUCER = (
    "After a commit or abort that timed out, close the producer and open a new one with the same transactional id; "
    "let no library retry it for longer."
)
SOURCES = ("KAFKA-17754", "KIP-890")

PRODUCER = transaction_coordinator(1)
COPIER = transaction_coordinator(1, "copier")

# Two records in a transaction, in two partitions: A before the late request arrives, B after it. As many are aborted as
# are committed, so that one of either kind comes soon.
SMALL = Scenario(
    name="late_end",
    mode=Mode.EXACTLY_ONCE,
    workload="late_end",
    producers=ProducerSettings(
        keyed=0,
        keyless=1,
        records_per_s=40,
        records_per_transaction=2,
        aborted_share=0.5,
        request_timeout_ms=GIVES_UP_MS,
    ),
    consumers=ConsumerSettings(members=1),
    transactions=TransactionSettings(topics=2),
    timings=Timings(warm_up_s=0.2, cool_down_s=0.2),
    produce_s=2.0,
)
# Output before the late request arrives, the offsets of its input after it.
PIPELINE = replace(
    SMALL,
    workload="transactional_copy",
    producers=ProducerSettings(keyed=1, keyless=0, records_per_s=100, records_per_transaction=10),
    pipeline=PipelineSettings(
        members=1,
        inputs_per_transaction=20,
        aborted_share=0.3,
        producer=ProducerOptions(request_timeout_ms=GIVES_UP_MS),
    ),
)


@dataclass(frozen=True)
class Late:
    """A late end: the end that is late, the transaction in which it arrives, and the expected anomaly."""

    hazard: str
    base: Scenario
    worker: str
    on: Target
    since: Moment
    until: Moment
    anomalies: tuple[str, ...]
    lane: Lane = Lane.PRODUCE

    def _schedule(self, until: str, hold_s: float) -> Schedule:
        fault = LateRequests(("EndTxn",), self.lane, worker=self.worker, since=self.since.value, until=until)
        return once(fault, on=self.on, after_s=0.1, hold_s=hold_s)

    @property
    def uncured(self) -> Scenario:
        return replace(
            self.base,
            name=f"control-{self.hazard}",
            hazard=self.hazard,
            schedule=self._schedule(self.until.value, 0.1),
            expected=Verdict.VIOLATED,
            requires=dict.fromkeys(self.anomalies, 1),
            control=True,
        )

    @property
    def in_time(self) -> Scenario:
        """Return the scenario in which the held end is delivered while the client still waits for the answer."""
        return replace(
            self.base, name=f"{self.hazard}-in_time", schedule=self._schedule("", GIVES_UP_MS / 6000)
        )

    @property
    def cured(self) -> Scenario:
        """Return the scenario in which the end is just as late, but comes after a new producer with the same transactional id."""
        return replace(
            self.base,
            name=f"safe-{self.hazard}",
            hazard=self.hazard,
            schedule=self._schedule(self.until.value, 0.1),
            producers=replace(self.base.producers, request_timeout_ms=CURED_MS)
            if self.worker == "producer-1"
            else self.base.producers,
            pipeline=replace(self.base.pipeline, producer=ProducerOptions(request_timeout_ms=CURED_MS)),
            transactions=CURED,
        )


COMMIT_THEN_ABORT = Late(
    "late_commit_then_abort",
    SMALL,
    "producer-1",
    PRODUCER,
    Moment.BEFORE_COMMIT,
    Moment.MIDWAY_TO_ABORT,
    ("aborted_read",),
)
ABORT_THEN_COMMIT = Late(
    "late_abort_then_commit",
    SMALL,
    "producer-1",
    PRODUCER,
    Moment.BEFORE_ABORT,
    Moment.MIDWAY_TO_COMMIT,
    ("torn", "lost"),
)
ABORT_THEN_OFFSETS = Late(
    "late_abort_then_offsets",
    PIPELINE,
    "copier-1",
    COPIER,
    Moment.BEFORE_ABORT,
    Moment.MIDWAY_TO_COMMIT,
    ("missing_effect", "lost"),
    Lane.CONSUME,
)
LATE = (COMMIT_THEN_ABORT, ABORT_THEN_COMMIT, ABORT_THEN_OFFSETS)

WITHOUT_HOLD = (replace(SMALL, name="no_late_end"), replace(PIPELINE, name="no_late_end-pipeline"))

# Without aiming: any ends are held for longer than the client waits, and arrive in whatever transaction is open then.
# Transactions are slow, as in an application that works on each record. The client's timeouts are short, so that there are many
# late requests in a short time. This is not a control: a run in which no late end did harm is HELD.
RANDOM = replace(
    SMALL,
    name="late_end-random",
    producers=replace(SMALL.producers, records_per_s=60, records_per_transaction=5, request_timeout_ms=1000),
    transactions=TransactionSettings(topics=2, spread_s=0.25),
    schedule=every(7.0, HoldRequests(("EndTxn",)), on=PRODUCER, hold_s=2.0, times=5),
)
