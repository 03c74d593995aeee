"""Idempotent producers with many partitions while leaders are killed and moved by elections."""

from __future__ import annotations

from faults.flaky_link import FlakyLink
from faults.kill import Kill
from faults.transfer_leadership import TransferLeadership
from harness.contracts import Direction
from harness.hunts.hunt import Hunt
from harness.scenario import Scenario
from harness.schedule import Schedule, once, overlapping, sequence
from harness.targets import leader_of
from suites.hunts import _epochs

PARTITIONS = 48
_RESETS = FlakyLink(lanes="producers", direction=Direction.ANSWERS)


def _moves(first: int) -> Schedule:
    """Move leaders while answers of another broker are lost, then kill a leader; twice, from different partitions on."""
    steps = []
    for turn in (first, first + 2):
        steps += [
            overlapping(
                once(TransferLeadership(), on=leader_of(turn), after_s=0.3, hold_s=0.8),
                once(_RESETS, on=leader_of(turn + 1), after_s=0.4, hold_s=0.3),
            ),
            once(Kill(), on=leader_of(turn + 1), after_s=0.3, hold_s=0.5),
        ]
    return sequence(*steps, pause_s=0.3)


def scenario(seed: int) -> Scenario:
    return _epochs.scenario("election_duplicates", _moves(seed * 7 % (PARTITIONS - 4)), seed, PARTITIONS)


hunt = Hunt(
    title="Does an idempotent librdkafka producer write duplicates while leaders are killed and moved?",
    suspicion=_epochs.SUSPICION,
    sources=_epochs.SOURCES,
    scenario=scenario,
    shows=_epochs.SHOWS,
    runs=10,
    not_tried="compression, requests of several megabytes, hundreds of partitions, hours of one producer, other releases.",
    log_lines=_epochs.LOG_LINES,
    page=_epochs.PAGE,
)
