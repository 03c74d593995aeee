"""A hunt: a suspected defect, the scenario that could show it, and the result of its runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.claims.claim import ClusterNeeds
from harness.contracts import Verdict
from harness.statistics.rates import Rate

if TYPE_CHECKING:
    from harness.campaign import Result
    from harness.scenario import Scenario


STUCK = "stuck"


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """A defect that was reported and not shown here yet, and the search for it.

    `scenario` returns the run of a seed; it expects HELD, since Kafka promises it. A run is a finding if it is VIOLATED, or if a
    reason why it is inconclusive matches `stuck`.
    """

    title: str  # the question, as a heading
    suspicion: str  # what may go wrong and why, in one or two sentences
    sources: tuple[str, ...]  # issues, KIPs
    scenario: Callable[[int], Scenario]
    shows: tuple[
        str, ...
    ]  # anomalies that would confirm the suspicion; others are findings too, and are named as such
    runs: int  # the budget, if the user gives none
    not_tried: str  # what this search leaves out
    needs: ClusterNeeds = field(default_factory=ClusterNeeds)
    # Pattern of the reasons why a run is inconclusive that are a finding here, such as a client that does not go on.
    stuck: str = ""
    log_lines: str = ""  # pattern of the lines in the logs of nodes that a maintainer wants to read
    page: str = ""  # the document with the result, in docs/findings


@dataclass(frozen=True, kw_only=True)
class HuntedRun:
    """One run of a hunt, as far as the account of the hunt needs it."""

    seed: int
    scenario: str
    path: Path | None
    verdict: str  # empty if the run broke off
    found: Mapping[str, int] = field(default_factory=dict)  # forbidden anomalies with their counts, and STUCK
    doubts: tuple[str, ...] = ()  # why it proves nothing, or why it broke off
    attempted: int = 0
    acked: int = 0
    faults: int = 0  # that took effect
    seconds: float = 0.0

    @property
    def is_finding(self) -> bool:
        return bool(self.found)

    @property
    def counts(self) -> bool:
        """True if the run says something about the rate: it found something, or proves that it looked."""
        return self.is_finding or self.verdict == Verdict.HELD

    @classmethod
    def of(cls, result: Result, seconds: float, stuck: str = "") -> HuntedRun:
        windows, judged = result.reconciled["coverage"]["windows"], result.judgement
        violated = judged.verdict is Verdict.VIOLATED
        found = {each.anomaly: each.count for each in judged.violations} if violated else {}
        reasons = (*judged.inconclusive, *judged.stalled)
        if stuck and (count := sum(bool(re.search(stuck, reason)) for reason in reasons)):
            found[STUCK] = count
        return cls(
            seed=result.scenario.seed,
            scenario=result.scenario.name,
            path=result.run.path,
            verdict=str(result.verdict),
            found=found,
            doubts=judged.inconclusive,
            attempted=result.count("attempted"),
            acked=result.count("acked"),
            faults=sum(bool(window["bit"]) for window in windows),
            seconds=round(seconds, 1),
        )

    def as_data(self) -> dict[str, Any]:
        return {
            **vars(self),
            "path": None if self.path is None else str(self.path),
            "found": dict(self.found),
            "doubts": list(self.doubts),
        }


@dataclass
class HuntResult:
    """All runs of a hunt so far."""

    name: str
    hunt: Hunt
    runs: list[HuntedRun] = field(default_factory=list)
    evidence: Path | None = None
    not_run: str = ""  # why no run was possible on this machine

    @property
    def findings(self) -> list[HuntedRun]:
        return [run for run in self.runs if run.is_finding]

    @property
    def rate(self) -> Rate:
        """Findings among the runs that say something; inconclusive and broken runs are left out."""
        return Rate(len(self.findings), sum(run.counts for run in self.runs))

    def total(self, what: str) -> int:
        return sum(int(getattr(run, what)) for run in self.runs if run.counts)

    @property
    def anomalies(self) -> dict[str, int]:
        """The number of runs in which each forbidden anomaly was found."""
        names = sorted({name for run in self.findings for name in run.found})
        return {name: sum(name in run.found for run in self.findings) for name in names}

    def as_data(self) -> dict[str, Any]:
        return {
            "id": self.name,
            "title": self.hunt.title,
            "sources": list(self.hunt.sources),
            "shows": list(self.hunt.shows),
            "rate": self.rate.as_data(),
            "unproven": len(self.runs) - self.rate.runs,
            "anomalies": self.anomalies,
            **{name: self.total(name) for name in ("attempted", "acked", "faults")},
            "seconds": round(sum(run.seconds for run in self.runs), 1),
            "runs": [run.as_data() for run in self.runs],
            "evidence": None if self.evidence is None else str(self.evidence),
            "not_run": self.not_run,
        }
