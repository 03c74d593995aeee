"""Brokers in containers with limited resources: the faults that control groups make possible. Pure data."""

from __future__ import annotations

from faults.slow_disk import SlowDisk
from faults.starve import Starve
from harness.contracts import Mode, TopicSettings
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of


def throttled(mode: Mode, harm: str) -> Scenario:
    """Return a scenario of a throttled disk. Kafka waits for an fsync only if configured to, and reads mostly from memory."""
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
