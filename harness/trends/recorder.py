"""The rows of one session: what a judged run adds to the store."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.contracts import Verdict
from harness.ledger.rundir import RunDir
from harness.trends.row import SCHEMA, Row, fault_text
from harness.trends.store import FOLDER, StoreFile
from harness.verdict import Judgement

Note = Callable[[str], None]


class SessionRecorder:
    """Adds the judged runs of one session to the store of a runs folder.

    A trend is never worth a verdict: if a row cannot be added, `note` gets one line, and the session goes on without trends.
    """

    def __init__(self, runs: Path, kind: str, note: Note, session: str = "", canary: str = "") -> None:
        self.kind = kind
        self.session = session or f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self._canary, self._note = canary, note
        self._file = StoreFile(runs / FOLDER)
        self._lock = threading.Lock()  # a campaign judges in a thread
        self._failed = False

    def add(self, run: RunDir, reconciled: Mapping[str, Any], judgement: Judgement) -> None:
        """Append the row of a judged run."""
        with self._lock:
            if self._failed:
                return
            try:
                manifest = run.read_manifest()
                self._file.append(self._row(run, manifest, reconciled, judgement))
            except Exception as error:  # noqa: BLE001  whatever it is, the verdict counts
                self._failed = True
                what = f"{type(error).__name__}: {error}"
                self._note(f"trends: {run.run_id} and later runs are not added: {what}")

    @contextmanager
    def as_kind(self, kind: str) -> Iterator[None]:
        """Runs that are judged in this block are of another kind: a night replays what it found."""
        before, self.kind = self.kind, kind
        try:
            yield
        finally:
            self.kind = before

    def _row(
        self, run: RunDir, manifest: Mapping[str, Any], reconciled: Mapping[str, Any], judgement: Judgement
    ) -> Row:
        scenario, versions = manifest["scenario"], manifest.get("versions", {})
        schedule = scenario.get("schedule") or ()
        windows = reconciled["coverage"]["windows"]
        started_s = float(manifest["clock"].get("unix", 0.0))
        latency = reconciled.get("latency_ms", {})
        forbidden, allowed = _sums(judgement.violations), _sums(judgement.counted)
        provoked = judgement.expected is Verdict.VIOLATED
        faults = tuple(str(window["fault"]["fault"]) for window in schedule)
        return Row(
            schema=SCHEMA,
            session=self.session,
            kind=self.kind,
            started_s=started_s,
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started_s)),
            run=run.run_id,
            scenario=str(scenario.get("name", run.path.parent.name)),
            mode=str(scenario["mode"]),
            workload=str(scenario.get("workload", "")),
            judged_as=judgement.guarantee.value,
            expected=judgement.expected.value,
            verdict=judgement.verdict.value,
            standing=judgement.standing.name.lower(),
            canary=bool(self._canary) and scenario.get("name") == self._canary,
            control=bool(scenario.get("control")),
            fault=str(scenario.get("fault") or "none"),
            faults=faults,
            targets=tuple(_target(window["on"]) for window in schedule),
            client=str(scenario.get("client", "")),
            client_version=str(versions.get("confluent-kafka", "")),
            kafka_version=str(versions.get("kafka", "")),
            cluster=str(manifest.get("cluster", {}).get("kind", "")),
            machine=_machine(manifest.get("machine", {})),
            seed=int(scenario.get("seed") or 0),
            anomalies=tuple(forbidden),
            anomaly_counts=tuple(forbidden.values()),
            anomaly_faults=tuple(_faults_of(name, reconciled, faults) for name in forbidden),
            planted=tuple(sorted({*scenario.get("requires", ()), *scenario.get("tolerates", ())})) if provoked else (),
            allowed=tuple(allowed),
            allowed_counts=tuple(allowed.values()),
            windows=len(schedule),
            windows_bitten=sum(bool(window.get("bit")) for window in windows),
            unavailable_s=_decimal(reconciled.get("unavailable_s_max")),
            recovery_s=tuple(each for w in windows if (each := _decimal(w.get("recovered_s"))) is not None),
            throughput_per_s=_decimal(reconciled.get("throughput_per_s")),
            latency_p50_ms=_decimal(latency.get("p50")),
            latency_p99_ms=_decimal(latency.get("p99")),
            attempted=reconciled["counts"].get("attempted"),
            acked=reconciled["counts"].get("acked"),
        )  # fmt: skip


def _faults_of(anomaly: str, reconciled: Mapping[str, Any], faults: Sequence[str]) -> str:
    """Return the faults in whose windows the anomaly was found; all faults of the run if some finding is in no window."""
    seen = [f.get("window") for f in reconciled.get("findings", ()) if f["anomaly"] == anomaly]
    inside = bool(seen) and all(isinstance(number, int) and 0 <= number < len(faults) for number in seen)
    return fault_text([faults[number] for number in seen] if inside else faults)


def _sums(counts: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in counts:
        found[each.anomaly] = found.get(each.anomaly, 0) + each.count
    return found


def _target(described: Mapping[str, Any]) -> str:
    return "-".join(str(value) for name, value in described.items() if (name, value) != ("partition", 0))


def _machine(described: Mapping[str, Any]) -> str:
    if not described:
        return ""
    return f"{described.get('system')}, {described.get('cores')} cores, {described.get('memory_gib')} GiB"


def _decimal(value: Any) -> float | None:
    """Return a float, so that a column has one type; None for anything that is no number."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None
