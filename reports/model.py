"""The content of a report, read from the files of run folders and from nothing else.

Reading never fails because a run did: a run that crashed before it was reconciled is INCONCLUSIVE, and one whose files
are damaged, of another version or contradict each other is UNREADABLE. Both are rows of the report.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import LedgerError
from harness.expectation import Standing, standing
from harness.ledger.rundir import RunDir
from harness.trends.differences import Differences
from reports.course import Course
from reports.files import counts, decimal, files_of, integer, items, mapping, text, texts
from reports.many.comparison import Comparison
from reports.many.night import Night
from reports.required import Required
from reports.timeline import Timeline

__all__ = ["HELD", "INCONCLUSIVE", "VIOLATED", "Report", "RunReport", "Standing", "read_runs"]
HELD, VIOLATED, INCONCLUSIVE = "HELD", "VIOLATED", "INCONCLUSIVE"
UNREADABLE = "UNREADABLE"  # no verdict: the files of the run cannot be read or trusted


@dataclass(frozen=True)
class Reason:
    """One anomaly of a verdict: how often, and why that is forbidden or allowed."""

    anomaly: str
    count: int
    reason: str


@dataclass(frozen=True)
class Window:
    """One fault window as it happened; times in seconds from the run's clock, None if it never happened."""

    number: str
    fault: str
    target: str
    nodes: tuple[str, ...]
    bit: bool
    proof: str
    measured: Mapping[str, Any]
    healed: bool
    heal_proof: str
    open_s: float | None
    bite_s: float | None
    heal_s: float | None
    healed_s: float | None
    error: str
    way: str = ""  # how the fault was done, if there are several ways
    recovered_s: float | None = None  # from its opening until every partition that fell silent acks again


@dataclass(frozen=True)
class Finding:
    anomaly: str
    topic: str
    partition: int | None
    messages: tuple[str, ...]
    offsets: tuple[str, ...]
    sender: str
    reader: str
    t_s: float | None
    window: str
    evidence: Mapping[str, Any]
    text: str


@dataclass(frozen=True)
class RunReport:
    """One run. `counts` has what was counted: an anomaly that was not looked for is absent, not 0."""

    run_id: str
    path: Path
    scenario: str
    mode: str
    judged_as: str
    fault: str
    control: bool
    hazard: str
    expected: str
    verdict: str
    seed: int | None
    started: Any
    command: str
    violations: tuple[Reason, ...] = ()
    counted: tuple[Reason, ...] = ()
    inconclusive: tuple[str, ...] = ()
    requirement: Required = field(default_factory=Required)
    counts: Mapping[str, int] = field(default_factory=dict)
    losses: Mapping[str, int] = field(default_factory=dict)  # by class
    compared: Mapping[str, int] = field(default_factory=dict)
    crashed: Mapping[str, str] = field(default_factory=dict)
    unavailable_s_max: float | None = None
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    throughput_per_s: float | None = None
    windows: tuple[Window, ...] = ()
    findings: tuple[Finding, ...] = ()
    findings_file: str = ""  # the file with all findings; "" if it was not written
    coverage: Mapping[str, Any] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)
    settings: Mapping[str, Any] = field(default_factory=dict)
    cluster: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""  # why it cannot be read

    @property
    def standing(self) -> Standing:
        if self.error:
            return Standing.UNREADABLE
        return standing(self.verdict, self.expected, self.requirement.kinds)

    @property
    def required(self) -> str:
        """`required: lost >= 1; found: lost 48`; empty if nothing is required."""
        return self.requirement.text({v.anomaly: v.count for v in self.violations})

    @property
    def bite(self) -> str | None:
        """The proofs of the windows that took effect; None if none did, or none was planned."""
        return "; ".join(w.proof or f"{w.fault} took effect" for w in self.windows if w.bit) or None

    @property
    def software(self) -> str:
        """The versions that brokers and clients reported: `Kafka 3.9.2, confluent-kafka 2.10.1`."""
        names = {"kafka": "Kafka", "confluent-kafka": "confluent-kafka"}
        return ", ".join(
            f"{label} {self.versions[name]}" for name, label in names.items() if name in self.versions
        )

    def count(self, name: str) -> int | None:
        return self.counts.get(name)

    def forbids(self, anomaly: str) -> bool:
        return any(v.anomaly == anomaly for v in self.violations)

    @classmethod
    def unreadable(cls, run: RunDir, error: Exception) -> RunReport:
        why = str(error).replace(f"{run.path}{os.sep}", "")
        return cls(
            run_id=run.run_id, path=run.path, scenario=run.path.parent.name, mode="unknown", judged_as="unknown",
            fault="unknown", control=False, hazard="", expected=HELD, verdict=UNREADABLE, seed=None, started=None,
            command="", inconclusive=(why,), error=why,
        )  # fmt: skip

    @classmethod
    def read(cls, run: RunDir) -> RunReport:
        try:
            manifest, reconciled, judged, troubles = files_of(run)
        except LedgerError as error:
            return cls.unreadable(run, error)
        scenario = mapping(manifest, "scenario")
        coverage = mapping(reconciled, "coverage")
        verdict = INCONCLUSIVE if troubles else text(judged, "verdict")
        mode = text(scenario, "mode", "unknown")
        command = manifest.get("command") or ""
        return cls(
            run_id=run.run_id,
            path=run.path,
            scenario=text(scenario, "name", run.path.parent.name),
            mode=mode,
            judged_as=text(judged, "guarantee") or text(scenario, "guarantee", mode),
            fault=text(scenario, "fault", "unknown"),
            control=bool(scenario.get("control")),
            hazard=text(scenario, "hazard"),
            expected=text(judged, "expected") or text(scenario, "expected", HELD),
            verdict=verdict,
            seed=integer(scenario.get("seed")),
            started=_started(mapping(manifest, "clock")),
            command=shlex.join(map(str, command)) if isinstance(command, list) else str(command),
            violations=_reasons(judged, "violations"),
            counted=_reasons(judged, "counted"),
            inconclusive=(*troubles, *map(str, items(judged, "inconclusive"))),
            requirement=Required.read(judged, troubles),
            counts=counts(reconciled, "counts"),
            losses=counts(reconciled, "losses"),
            compared=counts(reconciled, "compared"),
            crashed={k: str(v) for k, v in mapping(reconciled, "crashed").items()},
            unavailable_s_max=decimal(reconciled.get("unavailable_s_max")),
            latency_ms={k: v for k, v in mapping(reconciled, "latency_ms").items() if decimal(v) is not None},
            throughput_per_s=decimal(reconciled.get("throughput_per_s")),
            windows=tuple(_window(w) for w in items(coverage, "windows") if isinstance(w, dict)),
            findings=tuple(_finding(f) for f in items(reconciled, "findings") if isinstance(f, dict)),
            findings_file=run.findings.name if run.findings.exists() else "",
            coverage={k: v for k, v in coverage.items() if k != "windows"},
            timeline=Timeline.read(mapping(reconciled, "timeline")),
            settings=scenario,
            cluster=mapping(manifest, "cluster"),
            machine=mapping(manifest, "machine"),
            versions=mapping(manifest, "versions"),
        )


@dataclass(frozen=True)
class Report:
    """All that one page shows."""

    title: str
    command: str
    seed: int | None
    versions: Mapping[str, Any]
    started: Any
    seconds: float | None
    runs: tuple[RunReport, ...]
    course: Course | None = None
    night: Night | None = None  # that the runs belong to
    differences: Differences | None = None  # between that night and those before it
    comparison: Comparison | None = None  # of the first runs with the others

    @property
    def promises(self) -> tuple[RunReport, ...]:
        return tuple(r for r in self.runs if not r.control)

    @property
    def controls(self) -> tuple[RunReport, ...]:
        return tuple(r for r in self.runs if r.control)


def read_runs(runs: Iterable[RunDir]) -> tuple[RunReport, ...]:
    return tuple(RunReport.read(run) for run in runs)


def _reasons(judged: Mapping[str, Any], name: str) -> tuple[Reason, ...]:
    return tuple(
        Reason(text(r, "anomaly"), integer(r.get("count")) or 0, text(r, "reason"))
        for r in items(judged, name)
        if isinstance(r, dict)
    )


def _window(w: Mapping[str, Any]) -> Window:
    return Window(
        number=text(w, "window"), fault=text(w, "fault"), target=text(w, "target"), nodes=texts(w, "nodes"),
        bit=bool(w.get("bit")), proof=text(w, "proof"), measured=mapping(w, "measured"),
        healed=bool(w.get("healed")), heal_proof=text(w, "heal_proof"), open_s=decimal(w.get("open_s")),
        bite_s=decimal(w.get("bite_s")), heal_s=decimal(w.get("heal_s")), healed_s=decimal(w.get("healed_s")),
        error=text(w, "error"), way=text(w, "way"), recovered_s=decimal(w.get("recovered_s")),
    )  # fmt: skip


def _finding(f: Mapping[str, Any]) -> Finding:
    return Finding(
        anomaly=text(f, "anomaly"), topic=text(f, "topic"), partition=integer(f.get("partition")),
        messages=texts(f, "messages"), offsets=texts(f, "offsets"), sender=text(f, "sender"),
        reader=text(f, "reader"), t_s=decimal(f.get("t_s")), window=text(f, "window"),
        evidence=mapping(f, "evidence"), text=text(f, "text"),
    )  # fmt: skip


def _started(clock: Mapping[str, Any]) -> Any:
    """Return epoch seconds if the manifest has them, otherwise its text: numbers can be compared and shown in UTC."""
    return clock.get("wall") if decimal(clock.get("unix")) is None else clock["unix"]
