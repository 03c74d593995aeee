"""The steps that can make a scenario smaller, in the order in which they are tried. Pure.

A step is only a proposal. Whether the smaller scenario still shows the anomaly is decided by running it
(harness/nights/minimising.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from harness.scenario import (
    ChurnSettings,
    ConsumerSettings,
    PipelineSettings,
    ProducerSettings,
    Scenario,
    Timings,
    TransactionSettings,
)
from harness.schedule import Schedule, Window

Step = tuple[str, Scenario]  # what was made smaller, and the scenario

_MANY_FAULTS = 4
_LEAST_HOLD_S = 0.5
_FIRST_S = 0.5
_LEAST_RATE = 100  # records per second
_SETTINGS = ("producers", "consumers", "pipeline", "transactions", "churn", "timings")
_SIZES = {  # by part: what counts clients and records; they become smaller, not default
    "producers": ("keyed", "keyless", "records_per_s", "payload_bytes", "records_per_transaction"),
    "consumers": ("members",),
    "pipeline": ("members", "inputs_per_transaction"),
}
_DEFAULTS: dict[str, Any] = {
    "producers": ProducerSettings(),
    "consumers": ConsumerSettings(),
    "pipeline": PipelineSettings(),
    "transactions": TransactionSettings(),
    "churn": ChurnSettings(),
    "timings": Timings(),
}


def steps(scenario: Scenario) -> Iterator[Step]:
    """Yield every smaller scenario that one step leads to: faults first, then windows, clients, records and settings."""
    yield from _fewer_faults(scenario)
    yield from _shorter_windows(scenario)
    yield from _fewer_clients(scenario)
    yield from _default_settings(scenario)


def size(scenario: Scenario) -> int:
    """Return a number that every step makes smaller, so that minimising ends."""
    windows = sum(1000 + round(10 * (w.hold_s + w.start_s)) for w in scenario.schedule)
    return windows + _clients(scenario) + 50 * len(_set(scenario)) + round(10 * scenario.produce_s)


# --- faults ----------------------------------------------------------------------------------------


def _fewer_faults(scenario: Scenario) -> Iterator[Step]:
    """Yield each half of many faults, then the schedule without each fault."""
    schedule = scenario.schedule
    if len(schedule) > _MANY_FAULTS:
        middle = len(schedule) // 2
        yield f"first {middle} faults", _held(scenario, schedule[:middle])
        yield f"last {len(schedule) - middle} faults", _held(scenario, schedule[middle:])
    for number, window in enumerate(schedule):
        rest = schedule[:number] + schedule[number + 1 :]
        yield f"without {window.fault} on {window.on}", _held(scenario, rest)


def _shorter_windows(scenario: Scenario) -> Iterator[Step]:
    for number, window in enumerate(scenario.schedule):
        if window.hold_s > _LEAST_HOLD_S:
            hold_s = max(_LEAST_HOLD_S, round(window.hold_s / 2, 2))
            yield (
                f"{window.fault} for {hold_s:g} s",
                _with_window(scenario, number, replace(window, hold_s=hold_s)),
            )
    first = min((w.start_s for w in scenario.schedule), default=0.0)
    if first > _FIRST_S:
        sooner = tuple(replace(w, start_s=round(w.start_s - first + _FIRST_S, 3)) for w in scenario.schedule)
        yield f"first fault after {_FIRST_S:g} s", _held(scenario, sooner)
    if not scenario.schedule and scenario.produce_s > 1.0:
        produce_s = max(1.0, round(scenario.produce_s / 2, 2))
        yield f"produce for {produce_s:g} s", replace(scenario, produce_s=produce_s)


def _with_window(scenario: Scenario, number: int, window: Window) -> Scenario:
    schedule = list(scenario.schedule)
    schedule[number] = window
    return _held(scenario, tuple(schedule))


def _held(scenario: Scenario, schedule: Schedule) -> Scenario:
    return replace(scenario, schedule=schedule)


# --- clients, records and partitions -----------------------------------------------------------------


def _fewer_clients(scenario: Scenario) -> Iterator[Step]:
    producers, consumers = scenario.producers, scenario.consumers
    each = (
        {"each": ()} if producers.each else {}
    )  # options of single producers: of producers that may be gone
    if producers.keyed + producers.keyless > 1:
        for keyed, keyless in ((1, 0), (0, 1)):
            if (keyed, keyless) != (producers.keyed, producers.keyless):
                yield from _changed(scenario, "producers", keyed=keyed, keyless=keyless, **each)
    if consumers.members > 1:
        yield from _changed(scenario, "consumers", members=1)
    if scenario.pipeline.members > 1 and scenario.pipeline != PipelineSettings():
        yield from _changed(scenario, "pipeline", members=1)
    if producers.records_per_s > _LEAST_RATE:
        yield from _changed(
            scenario, "producers", records_per_s=max(_LEAST_RATE, producers.records_per_s // 4)
        )
    if producers.payload_bytes > 128:
        yield from _changed(scenario, "producers", payload_bytes=128)
    if scenario.topic.partitions > 1:
        yield (
            "1 partition",
            replace(scenario, topic=replace(scenario.topic, partitions=1)),
        )
    if scenario.observed:
        yield "no observers", replace(scenario, observed=False)


def _clients(scenario: Scenario) -> int:
    producers = scenario.producers
    return (
        10 * (producers.keyed + producers.keyless + scenario.consumers.members + scenario.pipeline.members)
        + producers.records_per_s // 10
        + producers.payload_bytes // 8
        + 5 * scenario.topic.partitions
        + 20 * scenario.observed
    )


# --- settings ----------------------------------------------------------------------------------------


def _default_settings(scenario: Scenario) -> Iterator[Step]:
    """Yield each part with all its settings at their defaults, then each setting by itself at its default."""
    found = _set(scenario)
    for part in _SETTINGS:
        names = [name for owner, name in found if owner == part]
        if len(names) > 1:
            yield from _changed(scenario, part, **{name: _default(part, name) for name in names})
    for part, name in found:
        yield from _changed(scenario, part, **{name: _default(part, name)})


def _set(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the settings that differ from their defaults, as part and name."""
    return [
        (part, each.name)
        for part in _SETTINGS
        for each in fields(_DEFAULTS[part])
        if each.name not in _SIZES.get(part, ())
        and getattr(getattr(scenario, part), each.name) != _default(part, each.name)
    ]


def _default(part: str, name: str) -> Any:
    return getattr(_DEFAULTS[part], name)


def _changed(scenario: Scenario, part: str, **values: Any) -> Iterator[Step]:
    """Yield the scenario with these settings of a part; nothing if they contradict the others."""
    try:
        made = replace(scenario, **{part: replace(getattr(scenario, part), **values)})
    except ValueError:
        return
    shown = ", ".join(f"{name}={'default' if value is None else value}" for name, value in values.items())
    yield f"{part}: {shown}", made
