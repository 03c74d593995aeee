"""Shared by hunts for duplicates of idempotent producers whose epoch is bumped: the load and the texts."""

from __future__ import annotations

from harness.contracts import Mode, TopicSettings
from harness.scenario import ProducerSettings, Scenario, Timings
from harness.schedule import Schedule

SUSPICION = (
    "librdkafka bumps the epoch of all partitions when a request of one partition is out of order or its records expire. "
    "Requests of other partitions that were written and whose answers were lost are sent again with the new epoch, so "
    "the broker does not recognise them."
)
SOURCES = ("librdkafka#4953",)
SHOWS = ("duplicated", "reordered", "key_reordered")
CLIENT_LOG = {"debug": "eos"}
LOG_LINES = (
    r"\|(DRAIN|IDEMPSTATE|RETRYSEQ|ERRSEQ|FATAL)\||OutOfOrderSequence|InvalidProducerEpoch|UnknownProducerId"
)
PAGE = "docs/findings/librdkafka-4953.md"


def scenario(name: str, schedule: Schedule, seed: int, partitions: int) -> Scenario:
    """Return a run of idempotent producers, with limits for a busy machine."""
    return Scenario(
        name=f"hunt-{name}",
        mode=Mode.IDEMPOTENT,
        topic=TopicSettings(partitions=partitions),
        producers=ProducerSettings(
            keyed=1,
            keyless=1,
            records_per_s=1500,
            keys=480,
            request_timeout_ms=3000,
            delivery_timeout_ms=120_000,
            extra=CLIENT_LOG,
        ),
        schedule=schedule,
        timings=Timings(
            recovery_limit_s=120.0, flush_limit_s=90.0, drain_limit_s=180.0, final_read_limit_s=120.0
        ),
        seed=seed,
    )
