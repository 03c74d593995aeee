"""Hazards, one per file of `suites/hazards/`, found by listing the folder. Pure data."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import suites.hazards
from harness.contracts import Verdict
from harness.scenario import Scenario


@dataclass(frozen=True)
class Hazard:
    """A known way to break a promise: `control` provokes it and has to be VIOLATED, `safe` avoids it and has to be HELD."""

    control: Scenario
    safe: Scenario | None = None
    # From 1: its place among the controls of `prove` and in the smoke tests. Seeds follow from places: use the next one.
    # 0: only the suite runs it.
    place_in_prove: int = 0


def safe_way(control: Scenario, name: str, **changes: Any) -> Scenario:
    """Return the control with these changes, as a scenario that has to be HELD."""
    return replace(control, name=f"safe-{name}", expected=Verdict.HELD, requires={}, tolerates=(), **changes)


def found() -> dict[str, Hazard]:
    """Return all hazards by their ids, which are the names of their files."""
    modules = sorted(m.name for m in pkgutil.iter_modules(suites.hazards.__path__))
    ids = [name for name in modules if not name.startswith(("_", "test_"))]
    return {name: import_module(f"suites.hazards.{name}").hazard for name in ids}


def of_prove() -> tuple[Scenario, ...]:
    """Return the controls of `prove`, in the order of their places."""
    chosen = [hazard for hazard in found().values() if hazard.place_in_prove]
    return tuple(h.control for h in sorted(chosen, key=lambda h: h.place_in_prove))
