"""Brokers in containers that get less than they want: the faults that control groups make possible. Pure data."""

from __future__ import annotations

from faults.slow_disk import SlowDisk
from faults.starve import Starve
from harness.contracts import Mode, TopicSettings
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of


def throttled(mode: Mode, harm: str) -> Scenario:
    """Kafka waits for an fsync only if told to, and reads from the disk only what is not in memory."""
    fault = SlowDisk(harm=harm, rate_kb_s=256)
    return Scenario(
        name=f"{mode}-{fault}",
        mode=mode,
        topic=TopicSettings(extra={"flush.messages": "1"}),
        schedule=once(fault, on=leader_of(0), after_s=0.5, hold_s=3.0),
    )


def short_of_memory(mode: Mode) -> Scenario:
    fault = Starve(memory_mb=8)
    schedule = once(fault, on=leader_of(0), after_s=0.5, hold_s=3.0)
    return Scenario(name=f"{mode}-{fault}", mode=mode, schedule=schedule)
