"""Offsets are sent in the transaction without the member that sends them, so a paused member commits partitions that it has lost."""

from __future__ import annotations

from dataclasses import replace

from faults.pause_worker import PauseWorker
from harness.contracts import ProducerOptions
from harness.scenario import Pipeline
from harness.targets import copier
from harness.workers.breakpoints import Moment
from suites.scenarios.hazards import Hazard, Kind, safe_way
from suites.scenarios.pipelines import at, held, mistaken

_MISTAKEN = mistaken("no_group_metadata", Pipeline.NO_GROUP_METADATA, "zombie-after_produce")
# The broker cannot know that these offsets come from a member that has lost its partitions.
UNSAFE = replace(
    _MISTAKEN,
    # The transaction of the paused member stays open for all that time.
    pipeline=replace(_MISTAKEN.pipeline, producer=ProducerOptions(transaction_timeout_ms=300_000)),
    # When it resumes, another member has its partitions and has sent the same output.
    schedule=held(at(Moment.AFTER_PRODUCE, PauseWorker(until_overtaken=True)), copier(1)),
)
hazard = Hazard(
    title="A paused member of a pipeline goes on after another one has done its work",
    kind=Kind.ZOMBIES,
    at_risk="pipelines that send offsets without the consumer's group metadata, with a transactional id for each process",
    cure="Pass consumer_group_metadata() to send_offsets_to_transaction, so that the broker rejects offsets of a former member.",
    sources=("KIP-447",),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, pipeline=replace(UNSAFE.pipeline, kind=Pipeline.OFFSETS_IN_TRANSACTION)),
)
