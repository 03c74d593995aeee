"""Answers of `explain`: the account of one record, or every finding of a run in plain sentences.

This module reads the journals and the results of reconciliation; neither Spark nor sealed tables are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import LedgerError, UsageError
from harness.explain.record_history import Account, AccountBuilder
from harness.ledger.query import Journals, Position
from harness.ledger.results import read_reconciled, read_verdict
from harness.ledger.rundir import RunDir, need_file
from harness.runtime.terminal import printable

_NONE = "none that names it"
_UNKNOWN = "not known: this run is not reconciled"


def account_of_message(run: RunDir, text: str) -> Account:
    """Return the account of the message with this id."""
    journals = Journals(run)
    identity = journals.identity_of(text)
    found = journals.look({identity}, set())
    if not found.attempts and not found.seen:
        raise UsageError(f"--message {text}: it was never attempted, and no reader got it")
    return _with_findings(AccountBuilder(journals).message(identity, found), run)


def accounts_of_position(run: RunDir, text: str) -> list[Account]:
    """Return the accounts of all messages that were read or acked at a position; if there are none, of the position."""
    journals = Journals(run)
    position = journals.position_of(text)
    found = journals.look(set(), {position})
    builder = AccountBuilder(journals)
    if found.identities:
        each = (builder.message(i, journals.look({i}, set())) for i in sorted(found.identities))
        return [_with_findings(account, run) for account in each]
    bounds = journals.bounds.get(position[:2])
    if bounds is None:
        there = ", ".join(sorted(journals.log_name(*place) for place in journals.bounds)) or "none"
        raise UsageError(f"--position {text}: no such partition was read; there are: {there}")
    if not found.seen and not bounds["start"] <= position.offset < bounds["end"]:
        known = (
            f"the log of {journals.log_name(*position[:2])} goes from {bounds['start']} to {bounds['end']}"
        )
        raise UsageError(f"--position {text}: there is no record of it; {known}")
    return [_with_findings_at(builder.position(position, found), run, position)]


def overview(run: RunDir) -> dict[str, Any]:
    """Return the verdict, and for each anomaly found its count and the findings that reconciled.json has in full."""
    run.need_own_files()
    manifest, reconciled = run.read_manifest(), read_reconciled(run)
    verdict = read_verdict(run, manifest, reconciled)
    in_full = reconciled["findings"]
    looked_for = dict.fromkeys([*reconciled["compared"], *(f["anomaly"] for f in in_full)])
    reasons = {c["anomaly"]: c["reason"] for c in [*verdict["counted"], *verdict["violations"]]}
    forbidden = {c["anomaly"] for c in verdict["violations"]}
    return {
        "run": reconciled["run_id"],
        **{name: verdict[name] for name in ("verdict", "expected", "guarantee", "inconclusive")},
        "shortfalls": [each["text"] for each in verdict.get("shortfalls", ())],
        "counts": reconciled["counts"],
        "anomalies": [
            {
                "anomaly": anomaly,
                "count": count,
                "forbidden": anomaly in forbidden,
                "reason": reasons.get(anomaly, ""),
                "findings": [f for f in in_full if f["anomaly"] == anomaly],
            }
            for anomaly in looked_for
            if (count := int(reconciled["counts"].get(anomaly, 0)))
        ],
    }


def overview_text(answer: Mapping[str, Any]) -> str:
    counts = answer["counts"]
    seen = ", ".join(
        f"{name} {counts[name]}" for name in ("attempted", "acked", "in_log", "delivered") if name in counts
    )
    lines = [
        f"{answer['run']}: {answer['verdict']}, expected {answer['expected']}, held to {answer['guarantee']}",
        f"  {seen}",
    ]
    lines += [f"  not as required: {text}" for text in answer["shortfalls"]]
    lines += [f"  inconclusive: {text}" for text in answer["inconclusive"]]
    for one in answer["anomalies"]:
        rule = "forbidden" if one["forbidden"] else "allowed"
        lines += ["", f"{one['anomaly']} x {one['count']}, {rule}: {one['reason']}"]
        lines += [f"  {f['text']}" for f in one["findings"]]
        if (left := one["count"] - len(one["findings"])) > 0:
            lines.append(f"  … and {left} more in findings.parquet")
    return "\n".join(map(printable, lines if answer["anomalies"] else [*lines, "  no anomaly was found"]))


def _with_findings(account: Account, run: RunDir) -> Account:
    """Add every finding that names the message; findings that are not in reconciled.json by their evidence."""
    found = [f for f in _in_full(run) if account.title in (f.get("messages") or [])]
    anomalies = {f["anomaly"] for f in found}
    more = [row for row in _all_findings(run, account.title) if row["anomaly"] not in anomalies]
    findings = [f"{f['anomaly']}: {f['text']}" for f in found] + [
        f"{row['anomaly']}: "
        + ", ".join(f"{k} {v}" for k, v in dict(row["evidence"] or []).items() if v is not None)
        for row in more
    ]
    return replace(account, findings=findings or [_NONE if run.reconciled.exists() else _UNKNOWN])


def _with_findings_at(account: Account, run: RunDir, position: Position) -> Account:
    topics = {account.topic, "0", 0} if position.topic == 0 else {str(position.topic), position.topic}
    here = (
        f
        for f in _in_full(run)
        if f.get("topic") in topics
        and f.get("partition") == position.partition
        and position.offset in (f.get("offsets") or [])
    )
    findings = [f"{f['anomaly']}: {f['text']}" for f in here]
    return replace(account, findings=findings or [_NONE if run.reconciled.exists() else _UNKNOWN])


def _in_full(run: RunDir) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = read_reconciled(run)["findings"] if run.reconciled.exists() else []
    return findings


def _all_findings(run: RunDir, message: str) -> list[Mapping[str, Any]]:
    if not run.findings.exists():
        return []
    import pyarrow as pa

    rows: list[Mapping[str, Any]] = []
    for path in sorted(run.findings.glob("*.parquet")):
        need_file(path, "run ./onceproof reconcile again")
        try:
            rows += _naming(path, message)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            why = str(error).partition("\n")[0]
            raise LedgerError(f"{path}: cannot be read: {why}; run ./onceproof reconcile again") from error
    return rows


def _naming(path: Path, message: str) -> list[Mapping[str, Any]]:
    """Return the rows of findings that name a message."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = pa.schema([
        ("anomaly", pa.string()), ("messages", pa.list_(pa.string())), ("evidence", pa.map_(pa.string(), pa.string())),
    ])  # fmt: skip
    with pq.ParquetFile(path) as file:
        if not file.metadata.num_rows:
            return []  # a table without findings has no columns for them either
        table = file.read(columns=wanted.names).select(wanted.names).cast(wanted)
    column = table["messages"].combine_chunks()
    named = pc.list_parent_indices(column).filter(pc.equal(pc.list_flatten(column), message))
    rows: list[Mapping[str, Any]] = table.take(named.unique()).to_pylist()
    return rows
