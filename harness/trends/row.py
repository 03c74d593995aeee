"""A row of the store: one judged run as flat columns with stable types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from harness.contracts import Verdict

SCHEMA = 1  # is raised when a column changes its meaning; new columns do not raise it
NIGHTLY = "nightly"
REPEATS = ("replay", "minimise")  # kinds of runs that repeat what others found
NO_FAULT = "none"


@dataclass(frozen=True)
class Row:
    """One judged run. Every row has every column: an unknown text is empty, an unknown number null.

    Lists of one name belong together by position: `anomalies`, `anomaly_counts` and `anomaly_faults`; `allowed` and
    `allowed_counts`; `faults` and `targets`.
    """

    schema: int
    session: str  # one call of a command, or one night with all its resumptions
    kind: str  # the command: nightly, prove, pytest …
    started_s: float  # seconds since 1970
    started: str  # the same moment as text, in UTC: 2026-11-19T21:40:00Z
    run: str  # the run folder, relative to the folder of the runs
    scenario: str
    mode: str
    workload: str
    judged_as: str  # the mode whose promise was judged
    expected: str  # verdict
    verdict: str
    standing: str  # the verdict compared with the expected one: as_promised, broken, missed, unproven
    canary: bool  # the unsafe scenario of a night
    control: bool
    fault: str  # as in tables: kill-leader+pause-follower
    faults: tuple[str, ...]  # one for each scheduled window: kill
    targets: tuple[str, ...]  # leader of orders
    client: str
    client_version: str
    kafka_version: str
    cluster: str  # kind
    machine: str
    seed: int
    anomalies: tuple[str, ...]  # that the guarantee forbids
    anomaly_counts: tuple[int, ...]
    anomaly_faults: tuple[
        str, ...
    ]  # the faults in whose windows they were found, otherwise all of the run: kill + pause
    planted: tuple[str, ...]  # anomalies that the scenario requires or tolerates: they are no finding
    allowed: tuple[str, ...]  # anomalies that were found and that the guarantee allows
    allowed_counts: tuple[int, ...]
    windows: int
    windows_bitten: int
    unavailable_s: float | None  # longest
    recovery_s: tuple[float, ...]  # one for each window after which partitions recovered
    throughput_per_s: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    attempted: int | None
    acked: int | None

    @property
    def date(self) -> str:
        return self.started[:10]

    @property
    def conclusive(self) -> bool:
        return self.verdict != Verdict.INCONCLUSIVE

    @cached_property
    def findings(self) -> dict[str, str]:
        """The forbidden anomalies that nothing planted, with their faults. A canary and an inconclusive run have none."""
        if self.canary or self.verdict != Verdict.VIOLATED:
            return {}
        found = zip(self.anomalies, self.anomaly_faults, strict=True)
        return {anomaly: faults for anomaly, faults in found if anomaly not in self.planted}


def fault_text(faults: Iterable[str]) -> str:
    """Return the names of faults as one text that does not depend on their order: `kill + pause`, or `none`."""
    return _AND.join(sorted(set(faults))) or NO_FAULT


def faults_in(text: str) -> frozenset[str]:
    """Return the names that `fault_text` joined."""
    return frozenset() if text == NO_FAULT else frozenset(text.split(_AND))


_AND = " + "
