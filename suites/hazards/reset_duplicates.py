"""Connections are reset while answers are on their way: the records are written, and the producer sends them again."""

from __future__ import annotations

from faults.flaky_link import FlakyLink
from harness.contracts import Direction, Mode, Verdict
from harness.scenario import Scenario
from harness.schedule import every
from harness.targets import every_broker
from suites.scenarios.hazards import Hazard, Kind, safe_way

# The next answer on each connection is dropped and the connection is closed, so the request before it was processed.
RESETS = every(3.0, FlakyLink(lanes="clients", direction=Direction.ANSWERS), on=every_broker(), hold_s=0.3)
UNSAFE = Scenario(
    name="control-reset_duplicates",
    mode=Mode.AT_LEAST_ONCE,
    judged_as=Mode.IDEMPOTENT,
    expected=Verdict.VIOLATED,
    requires={"duplicated": 1},
    tolerates=("reordered", "key_reordered"),  # a record may be sent again behind later ones
    control=True,
    hazard="reset_duplicates",
    schedule=RESETS,
)
hazard = Hazard(
    title="Connections that are reset make a producer without idempotence send records twice",
    kind=Kind.PRODUCER_RETRIES,
    at_risk="producers without idempotence that retry: librdkafka's default, and Java clients before 3.0",
    cure="Set enable.idempotence=true.",
    sources=("KIP-98", "KIP-679"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, mode=Mode.IDEMPOTENT, judged_as=None),
)
