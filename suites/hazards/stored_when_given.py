"""librdkafka stores the offset of a record when it hands it out, and auto commit commits it, whether it was processed or not."""

from __future__ import annotations

from dataclasses import replace

from suites.scenarios.groups import DYING, mistaken
from suites.scenarios.hazards import Hazard, Kind, safe_way

UNSAFE = mistaken(
    "stored_when_given",
    "undelivered",
    tolerates=("overcommitted", "skipped"),  # its last commits are unknown, other ones may be known
    consumers=replace(DYING.consumers, auto_commit=True, store_when_given=True),
)
hazard = Hazard(
    title="Auto commit of offsets that are stored before the work, and a member that dies",
    kind=Kind.CONSUMERS,
    at_risk="consumers with the defaults of librdkafka: enable.auto.commit=true and enable.auto.offset.store=true",
    cure="Set enable.auto.offset.store=false and call store_offsets() when a record is processed.",
    sources=("librdkafka INTRODUCTION.md, auto offset store",),
    unsafe=UNSAFE,
    # Nothing is committed before it is processed, so the fault cannot wait for that: the member dies in the same place.
    safe=safe_way(
        UNSAFE,
        consumers=replace(DYING.consumers, auto_commit=True),
        schedule=DYING.schedule,
    ),
)
