"""The facts of a night that are not in its run folders: as the journal of the night has them.

`harness.nights` is above this package, so commands hand these facts over. Journals come from disk and are not trusted: values of
another type read as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.statistics.rates import Rate
from reports.files import integer, items, mapping, text, texts

Cell = tuple[str, str, str]  # a fault, and a dimension with its value: ("kill", "mode", "exactly_once")


@dataclass(frozen=True)
class Minimised:
    """The smallest scenario that still shows a finding; `test` is a pytest test to paste."""

    shows: bool
    complete: bool
    faults: int | None
    taken: tuple[str, ...]
    rate: Rate | None
    test: str

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> Minimised:
        return cls(
            event.get("shows") is True,
            event.get("complete") is True,
            integer(event.get("faults")),
            texts(event, "taken"),
            rate_of(mapping(event, "rate")),
            text(event, "test"),
        )


@dataclass(frozen=True)
class Night:
    """One night: what it was to do, what it did, and which pairs all nights have covered."""

    name: str  # its folder
    seed: int
    minutes: float
    used_s: float
    planned: int  # scenarios
    ended: bool
    canary: str
    canary_found: bool
    folder: Path  # of the runs: links of trends lead into it
    replayed: Mapping[str, Rate] = field(default_factory=dict)  # by scenario
    minimised: Mapping[str, Minimised] = field(default_factory=dict)  # by scenario
    cut: tuple[str, ...] = ()
    not_reached: tuple[str, ...] = ()
    troubles: Mapping[str, str] = field(default_factory=dict)  # by scenario
    leaks: tuple[str, ...] = ()
    clusters: int = 0
    possible: frozenset[Cell] = frozenset()  # that can be drawn
    covered: Mapping[Cell, int] = field(default_factory=dict)  # in how many runs of all nights it took effect

    @classmethod
    def of(cls, outcome: Mapping[str, Any], **known: Any) -> Night:
        """Return the night of `nightly --json`, or of its part that follows from the journal, with what else is known."""
        canary = mapping(outcome, "canary")
        findings = [each for each in items(outcome, "findings") if isinstance(each, dict)]
        replayed = {text(each, "scenario"): rate_of(mapping(each, "replayed")) for each in findings}
        return cls(
            canary=text(canary, "scenario"),
            canary_found=canary.get("found") is True,
            replayed={name: rate for name, rate in replayed.items() if rate is not None},
            minimised={
                text(each, "scenario"): Minimised.read(each["minimised"])
                for each in findings
                if isinstance(each.get("minimised"), dict)
            },
            cut=texts(outcome, "cut"),
            not_reached=texts(outcome, "not_reached"),
            troubles={
                text(each, "scenario"): text(each, "text")
                for each in items(outcome, "troubles")
                if isinstance(each, dict)
            },
            leaks=texts(outcome, "leaks"),
            clusters=integer(outcome.get("clusters")) or 0,
            **known,
        )

    @property
    def canary_sentence(self) -> str:
        if self.canary_found:
            return "The canary, an unsafe scenario among the others, was found."
        if self.canary in self.not_reached:
            return "The canary, the unsafe scenario among the others, was not run."
        return "The canary is an unsafe scenario among the others; what it breaks has to be found."

    def as_data(self) -> dict[str, Any]:
        """Return the key `night` of report.json."""
        return {
            "name": self.name,
            "seed": self.seed,
            "minutes": self.minutes,
            "used_s": self.used_s,
            "planned": self.planned,
            "ended": self.ended,
            "canary": {"scenario": self.canary, "found": self.canary_found},
            "cut": list(self.cut),
            "not_reached": list(self.not_reached),
            "troubles": [{"scenario": name, "text": why} for name, why in self.troubles.items()],
            "leaks": list(self.leaks),
            "clusters": self.clusters,
        }


def rate_of(event: Mapping[str, Any]) -> Rate | None:
    """Return the rate of repeats, which `harness.nights.repeats` wrote as `shown` and `conclusive`; None if they are no counts."""
    shown, conclusive = integer(event.get("shown")), integer(event.get("conclusive"))
    if shown is None or conclusive is None or not 0 <= shown <= conclusive:
        return None
    return Rate(shown, conclusive)
