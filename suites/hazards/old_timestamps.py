"""Records with a create time in the past expire at once: retention compares the time in the record with the clock.

So data that is loaded from an archive with its own times is gone after the next check for expired segments.
"""

from __future__ import annotations

from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import ProducerSettings, Scenario
from suites.hazards.retention_of_unread import OFTEN
from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way

HOUR_S = 3600.0
EIGHT_DAYS_AGO = ProducerSettings(age_s=8 * 24 * HOUR_S)

UNSAFE = Scenario(
    name="control-old_timestamps",
    mode=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={"expired": 100},
    forbids=("expired",),  # they were acked a moment ago, and the topic keeps records for seven days
    control=True,
    hazard="old_timestamps",
    produce_s=6.0,  # the brokers look for expired segments many times
    topic=TopicSettings(extra={"retention.ms": int(7 * 24 * HOUR_S * 1000)}),
    producers=EIGHT_DAYS_AGO,
)
hazard = Hazard(
    title="Records with old create times expire as soon as they are written",
    kind=Kind.RETENTION,
    at_risk="producers that set the time of a record to that of an old event, such as an import or a replay",
    cure="Set message.timestamp.type=LogAppendTime on such topics, or a retention.ms above the age of the data.",
    sources=("KIP-32", "KIP-937"),
    unsafe=UNSAFE,
    safe=safe_way(
        UNSAFE,
        topic=TopicSettings(
            extra={"retention.ms": int(7 * 24 * HOUR_S * 1000), "message.timestamp.type": "LogAppendTime"}
        ),
    ),
    needs=Needs(settings=OFTEN),
)
