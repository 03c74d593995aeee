"""Scenarios of a late Produce request (KAFKA-14402, KIP-890): it arrives after the abort of its transaction. Pure data.

The producer gives up on a record, aborts the transaction, and the broker reports that it is aborted. Then the request arrives. Brokers that
do not ask the coordinator whether the transaction is open append it, and so begin a transaction that the coordinator does not know.
"""

from __future__ import annotations

from dataclasses import replace

from faults.kill_worker import KillWorker
from faults.late_requests import LateRequests
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario, Timings, TransactionSettings
from harness.schedule import once, together
from harness.targets import every_broker, producer
from harness.workers.breakpoints import Moment

GIVES_UP_MS = 4000  # on a record; the client does not ask again meanwhile
VERIFICATION = "transaction.partition.verification.enable"
SOURCES = ("KAFKA-14402", "KIP-890")

# Each transaction writes A to one partition and B to the other one. A is in the log, then the request with B is held until the
# client has given up on it and has aborted the transaction. No transaction is aborted on purpose.
_HELD = LateRequests(
    ("Produce",),
    worker="producer-1",
    since=Moment.MIDWAY_TO_COMMIT.value,
    until=Moment.AFTER_ABORT.value,
)
_BASE = Scenario(
    name="late_produce",
    mode=Mode.EXACTLY_ONCE,
    workload="late_end",
    control=True,
    topic=TopicSettings(partitions=2),
    producers=ProducerSettings(
        keyed=0,
        keyless=1,
        records_per_s=40,
        records_per_transaction=2,
        aborted_share=0.0,
        delivery_timeout_ms=GIVES_UP_MS,
        request_timeout_ms=20_000,
    ),
    consumers=ConsumerSettings(members=1),
    transactions=TransactionSettings(topics=1),
    timings=Timings(warm_up_s=0.2),
)
# The next transaction of the same producer writes to the partition of B and commits, and B with it.
COMMITTED = replace(
    _BASE,
    name="control-late_produce_committed",
    hazard="late_produce_committed",
    expected=Verdict.VIOLATED,
    requires={"aborted_read": 1},
    schedule=once(_HELD, on=every_broker(), after_s=0.1, hold_s=0.1),
)
# The producer dies before B arrives, and its id is not used again: nothing ever ends the transaction that B begins.
HANGING = replace(
    _BASE,
    name="control-hanging_transaction",
    hazard="hanging_transaction",
    expected=Verdict.VIOLATED,
    requires={"late": 1},
    forbids=("late",),
    schedule=together((_HELD, every_broker()), (KillWorker(), producer(1)), after_s=0.1, hold_s=0.5),
    transactions=replace(_BASE.transactions, id_per_session=True),
    timings=replace(_BASE.timings, cool_down_s=2.0),  # other producers commit records behind it
)
