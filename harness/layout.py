"""How a cluster has to be laid out for the scenarios that will run on it, decided before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from harness import registry
from harness.cluster_options import Choice
from harness.contracts import Fault
from harness.scenario import Scenario

_WAY = "byteman"


def laid_out_for(choice: Choice, scenarios: Iterable[Scenario]) -> Choice:
    """The same cluster, with Byteman in its brokers only if a fault of these scenarios needs it."""
    return with_byteman(choice) if by_byteman(scenarios, fuse=choice.options.fuse) else choice


def with_byteman(choice: Choice) -> Choice:
    """Brokers of a cluster that runs already are as they are."""
    if choice.cluster == "existing":
        return choice
    return replace(choice, options=replace(choice.options, byteman=True))


def by_byteman(scenarios: Iterable[Scenario], *, fuse: bool = False) -> bool:
    """Whether a fault of theirs needs Byteman. Behind FUSE that is only a slow read."""
    return any(_needs(fault, fuse) for one in scenarios for fault in _faults(one))


def faults_by_byteman() -> list[str]:
    """The names of all faults that Byteman can do."""
    return [name for name in registry.names("fault") if _WAY in registry.load("fault", name).ways]


def _faults(scenario: Scenario) -> Iterator[Fault]:
    for window in scenario.schedule:
        yield window.fault
        inner = getattr(window.fault, "inner", None)  # of a fault that begins another one
        if inner is not None:
            yield inner


def _needs(fault: Fault, fuse: bool) -> bool:
    if _WAY not in fault.ways or getattr(fault, "rate_kb_s", None):  # a rate is kept by the container's group
        return False
    return not fuse or getattr(fault, "harm", None) == "read"
