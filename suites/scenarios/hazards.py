"""The catalogue of hazards, one per file of `suites/hazards/`, found by listing the folder. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from typing import Any

from harness import registry
from harness.clusters.base.options import PLAIN, Options
from harness.contracts import Verdict
from harness.scenario import Scenario

PACKAGE = "suites.hazards"


class Kind(StrEnum):
    """The classes of the catalogue."""

    BROKER_DURABILITY = "broker durability"
    PLANNED_MOVES = "planned moves"
    PRODUCER_RETRIES = "producer retries"
    TRANSACTIONS = "transactions"
    ZOMBIES = "zombies"
    CONSUMERS = "consumer commits and groups"
    RETENTION = "retention and compaction"
    PARTITIONERS = "partitioners"
    SHARE_GROUPS = "share groups"
    ELIGIBLE_LEADERS = "eligible leader replicas"
    CLUSTER_STATES = "cluster states"
    FALSE_ALARMS = "false alarms"


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The cluster that a hazard needs, besides the default one. Hazards with equal needs share a cluster."""

    options: Options = PLAIN
    settings: Mapping[str, str] = field(default_factory=dict)  # broker settings
    kafka: str = ""  # release of the brokers; empty: the user's choice
    # It leaves the cluster in a state that later runs could suffer from, so it gets a cluster for itself.
    alone: bool = False


# One cluster for all hazards that need disks behind FUSE, clocks that can be set, or several log folders.
DISKS_AND_CLOCKS = Needs(options=Options(fuse=True, clocks=True, log_folders=2))


@dataclass(frozen=True, kw_only=True)
class Hazard:
    """A known way to break a promise: `unsafe` provokes it and has to be VIOLATED, `safe` avoids it and has to be HELD.

    A false alarm has no `unsafe` scenario: it looks like a broken promise and is none, so `safe` has to be HELD.
    """

    title: str  # what happens, as a heading
    kind: Kind
    at_risk: str  # clients, versions and settings
    cure: str  # one sentence: what to change in an application or a cluster
    sources: tuple[str, ...] = ()  # KIPs, issues, documentation
    unsafe: Scenario | None = None
    safe: Scenario | None = None
    needs: Needs = field(default_factory=Needs)
    safe_needs: Needs | None = (
        None  # of the safe way, if another release or broker setting is what makes it safe
    )
    quick: bool = False  # part of `catalogue --quick`, which has one of each class
    # From 1: its place among the controls of `prove` and in the smoke tests. Seeds follow from places: use the next one.
    # 0: `prove` does not run it.
    place_in_prove: int = 0

    def __post_init__(self) -> None:
        # The report on the runs has the texts from their manifests, since it reads nothing but run folders. Both runs are
        # controls: they show that the harness sees what is there, and nothing else.
        for way in ("unsafe", "safe"):
            if (scenario := getattr(self, way)) is not None:
                object.__setattr__(self, way, replace(scenario, about=self.about, control=True))

    @property
    def about(self) -> dict[str, str]:
        """The texts for reports."""
        return {"title": self.title, "class": str(self.kind), "at_risk": self.at_risk, "cure": self.cure}

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The unsafe scenario, if there is one, and the safe one."""
        return tuple(scenario for scenario in (self.unsafe, self.safe) if scenario is not None)

    def needs_of(self, scenario: Scenario) -> Needs:
        """Return the cluster that this one of its scenarios needs."""
        is_safe = self.safe is not None and scenario.name == self.safe.name
        return self.safe_needs if is_safe and self.safe_needs is not None else self.needs


def safe_way(unsafe: Scenario, **changes: Any) -> Scenario:
    """Return the scenario with these changes, as one that has to be HELD."""
    return replace(
        unsafe, name=f"safe-{unsafe.hazard}", expected=Verdict.HELD, requires={}, tolerates=(), **changes
    )


def found() -> dict[str, Hazard]:
    """Return all hazards by their ids, which are the names of their files."""
    return {name: import_module(f"{PACKAGE}.{name}").hazard for name in registry.listed(PACKAGE)}


def of_prove() -> tuple[Scenario, ...]:
    """Return the unsafe scenarios that `prove` runs as controls, in the order of their places.

    They have no texts about the hazard: the report of `prove` lists them as controls, not as hazards with their safe ways.
    """
    chosen = sorted((h for h in found().values() if h.place_in_prove), key=lambda h: h.place_in_prove)
    return tuple(replace(h.unsafe, about={}) for h in chosen if h.unsafe is not None)
