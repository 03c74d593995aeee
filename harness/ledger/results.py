"""The results of reconciling and judging, reconciled.json and verdict.json: every used value is checked.

This program writes them, but reads them from folders that may come from a stranger, or from another version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Mode, Verdict
from harness.errors import LedgerError
from harness.guarantees import TABLE
from harness.ledger.manifest import LABEL
from harness.ledger.rundir import RunDir, read_json
from harness.ledger.value_checks import (
    Check,
    Wrong,
    anything,
    boolean,
    either,
    integer,
    list_of,
    mapping,
    number,
    one_of,
    optional,
    shape,
    text,
)

MOST_BUCKETS = 3_000_000  # a week of quarters of a second
_AGAIN = "run ./onceproof reconcile"
_COUNTS = mapping(integer(0, 1 << 62), LABEL)
_SECONDS = optional(number(-1e9, 1e9))
_TEXT = optional(text())
_TEXTS = list_of(text())
_RATES = list_of(optional(number(-1e18, 1e18)), MOST_BUCKETS)
_LABEL_OR_NUMBER = optional(either(LABEL, integer()))

_WINDOW = shape(
    {"window": _LABEL_OR_NUMBER, "bit": boolean, "healed": boolean},
    {
        "fault": optional(LABEL), "target": optional(LABEL), "nodes": list_of(LABEL), "proof": _TEXT, "heal_proof": _TEXT,
        "measured": optional(mapping(anything)), "way": _TEXT, "error": _TEXT, "open_s": _SECONDS, "bite_s": _SECONDS,
        "heal_s": _SECONDS, "healed_s": _SECONDS, "recovered_s": _SECONDS,
    },
)  # fmt: skip
_FINDING = shape(
    {"anomaly": LABEL, "text": text()},
    {
        "topic": _LABEL_OR_NUMBER, "partition": optional(integer()), "messages": optional(list_of(LABEL)),
        "offsets": optional(list_of(integer())), "sender": _TEXT, "reader": _TEXT, "t_s": _SECONDS,
        "window": optional(integer()), "evidence": optional(mapping(anything)),
    },
)  # fmt: skip
_NOT_ASKED = shape(
    {"topic": LABEL, "partition": optional(integer()), "anomalies": list_of(LABEL), "why": text()}
)
_RECONCILED = shape(
    {
        "version": integer(),
        "run_id": LABEL,
        "counts": _COUNTS,
        "compared": _COUNTS,
        "findings": list_of(_FINDING, 1_000_000),
        "coverage": shape(
            {"windows": list_of(_WINDOW, 100_000)},
            {"gaps": _TEXTS, "notes": _TEXTS, "errors": _TEXTS, "stalled": _TEXTS, "drained": boolean,
             "drain_detail": _TEXT, "reads": mapping(boolean, LABEL), "observed": _COUNTS, "not_asked": list_of(_NOT_ASKED),
             "observers_behind": mapping(text(), LABEL), "unjudged": mapping(anything)},
        ),
    },
    {
        "scenario": LABEL,
        "crashed": mapping(text(), LABEL),
        "excused": mapping(_COUNTS, LABEL),
        "losses": _COUNTS,
        "unavailable_s_max": _SECONDS,
        "latency_ms": mapping(optional(number(-1e18, 1e18)), LABEL),
        "throughput_per_s": optional(number(-1e18, 1e18)),
        "timeline": shape(
            {},
            {"bucket_s": number(0.001, 1e6), "t_s": list_of(number(-1e6, 1e7), MOST_BUCKETS),
             **dict.fromkeys(("attempted", "acked", "delivered", "latency_p50_ms", "latency_p99_ms"), _RATES)},
        ),
    },
)  # fmt: skip
_REASONS = list_of(shape({"anomaly": LABEL, "count": integer(1, 1 << 62), "reason": text()}), 10_000)
_VERDICT = shape(
    {
        "verdict": one_of(Verdict),
        "expected": one_of(Verdict),
        "guarantee": one_of(Mode),
        "violations": _REASONS,
        "counted": _REASONS,
        "inconclusive": _TEXTS,
    },
    {
        "as_expected": boolean,
        "stalled": _TEXTS,
        "required": _COUNTS,
        "found": _COUNTS,
        "standing": LABEL,
        "shortfalls": list_of(shape({"kind": LABEL, "text": text()})),
    },
)


def read_reconciled(run: RunDir) -> dict[str, Any]:
    """Return the checked results of reconciliation."""
    reconciled = _read(run, "reconciled", _RECONCILED)
    line = reconciled.get("timeline", {})
    times = line.get("t_s") or [0]
    if (max(times) - min(times)) / line.get("bucket_s", 0.25) > MOST_BUCKETS:
        raise LedgerError(f"{run.reconciled}: a timeline of more than {MOST_BUCKETS} buckets; {_AGAIN}")
    return reconciled


def read_verdict(run: RunDir, manifest: Mapping[str, Any], reconciled: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked verdict; raise if it contradicts these findings or this promise."""
    stored = _read(run, "verdict", _VERDICT)
    if (why := _contradiction(stored, manifest["scenario"], reconciled)) is not None:
        raise LedgerError(f"{run.verdict}: {why}; {_AGAIN}")
    return stored


def _read(run: RunDir, what: str, check: Check) -> dict[str, Any]:
    path = getattr(run, what)
    stored = read_json(path, f"{_AGAIN} first")
    try:
        check(stored)
    except Wrong as wrong:
        raise LedgerError(f"{path}: not what reconciling writes: {wrong}; {_AGAIN}") from wrong
    return stored


def _contradiction(
    stored: Mapping[str, Any], scenario: Mapping[str, Any], reconciled: Mapping[str, Any]
) -> str | None:
    for name, promised in (
        ("guarantee", scenario["guarantee"]),
        ("expected", scenario.get("expected", Verdict.HELD.value)),
    ):
        if stored[name] != promised:
            return f"{name} is {stored[name]}, the manifest says {promised}"
    follows = (
        Verdict.VIOLATED
        if stored["violations"]
        else Verdict.INCONCLUSIVE
        if stored["inconclusive"]
        else Verdict.HELD
    )
    if stored["verdict"] != follows:
        return f"it says {stored['verdict']}, but its reasons give {follows}"
    sums: dict[str, int] = {}
    for one in (*stored["violations"], *stored["counted"]):
        sums[one["anomaly"]] = sums.get(one["anomaly"], 0) + one["count"]
    for anomaly in TABLE.keys() & reconciled["compared"].keys():
        found = reconciled["counts"].get(anomaly, 0)
        if found != sums.get(anomaly, 0):
            return f"it counts {sums.get(anomaly, 0)} {anomaly}, reconciled.json {found}"
    return None
