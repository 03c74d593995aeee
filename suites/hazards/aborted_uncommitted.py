"""Readers with read_uncommitted read records of transactions that are aborted later.

Aborted records are flushed before the abort, and the group reads to the end of the log, so each of them is read, some before
their transaction ends.
"""

from __future__ import annotations

from harness.contracts import Mode, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario
from suites.scenarios.hazards import Hazard, safe_way

CONTROL = Scenario(
    name="control-aborted_uncommitted",
    mode=Mode.EXACTLY_ONCE,  # judged as read_committed, but the readers are configured otherwise
    expected=Verdict.VIOLATED,
    requires={"aborted_read": 1},
    tolerates=("premature_read",),
    control=True,
    hazard="aborted_uncommitted",
    produce_s=3.0,
    producers=ProducerSettings(aborted_share=0.8),
    consumers=ConsumerSettings(extra={"isolation.level": "read_uncommitted"}),
)
hazard = Hazard(
    place_in_prove=4,
    control=CONTROL,
    safe=safe_way(CONTROL, "aborted_committed", consumers=ConsumerSettings()),
)
