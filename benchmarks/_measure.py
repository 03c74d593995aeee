"""One ledger, measured: each engine in a separate process, and its findings compared with the expected ones."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import _process
from benchmarks.generated.run_folders import Made

ENGINES = {"seal": "sealing", "reconcile": "reconcile (sealed)", "duckdb": "DuckDB"}

Row = dict[str, Any]


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def measure(made: Made, engines: Sequence[str] = tuple(ENGINES)) -> Row:
    """Seal, reconcile and query one ledger, each in a separate process."""
    row: Row = {"records": made.records, "planted": made.expected, "as_planted": True, "ratio": None}
    for what in engines:
        row[what] = one = measured(what, made)
        row["as_planted"] &= not one["differs"]
        cost = "failed"
        if one["seconds"]:
            cost = f"{one['seconds']:.1f} s, {one['cpu_s']:.1f} CPU s, {one['together_mb']} MB"
        say(f"{made.records:,} records: {what}: {cost} (load before it: {one['load']})")
        for anomaly, text in one["differs"].items():
            say(f"{made.records:,} records: {what}: {anomaly}: {text}")
    if {"reconcile", "duckdb"} <= row.keys() and row["reconcile"]["seconds"] and row["duckdb"]["seconds"]:
        row["ratio"] = round(row["reconcile"]["seconds"] / row["duckdb"]["seconds"], 2)
    return row


def measured(what: str, made: Made) -> Row:
    load = round(os.getloadavg()[0], 1)  # seconds mean little if other programs use the machine
    try:
        one = _process.run(what, str(made.run.path))
    except _process.EngineFailed as error:
        return {"seconds": None, "load": load, "differs": {"all": str(error)}}
    counts = one.result.get("counts")
    wrong = differences(made.expected, counts) if counts is not None else {}
    return {
        "seconds": one.seconds, "cpu_s": one.cpu_s, "records_per_s": round(made.records / one.seconds), "peak_mb": one.peak_mb,
        "together_mb": one.together_mb, "steps": one.result.get("seconds", {}), "load": load,
        "differs": wrong | one.result.get("crashed", {}),
    }  # fmt: skip


def differences(expected: Mapping[str, int], found: Mapping[str, int]) -> dict[str, str]:
    """Return the anomalies whose findings are not exactly the planted ones."""
    return {
        anomaly: f"{count} planted, {found.get(anomaly, 'not looked for')} found"
        for anomaly, count in expected.items()
        if found.get(anomaly) != count
    }


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| records | planted | engine | seconds | CPU seconds | records/s | peak MB: driver + JVM + workers | MB at once | found |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        for what, name in ENGINES.items():
            if what not in row:
                continue
            one = row[what]
            wrong = "; ".join(f"{anomaly}: {text}" for anomaly, text in one["differs"].items())
            found = "" if what == "seal" and not wrong else wrong or "as planted"
            cost = ["failed", "", "", "", ""]
            if one["seconds"]:
                peaks = " + ".join(str(mb) for mb in one["peak_mb"].values())
                cost = [
                    f"{one['seconds']:.1f}",
                    f"{one['cpu_s']:.1f}",
                    f"{one['records_per_s']:,}",
                    peaks,
                    f"{one['together_mb']:,}",
                ]
            planted = sum(row["planted"].values())
            lines.append(f"| {row['records']:,} | {planted} | {name} | {' | '.join(cost)} | {found} |")
        if row["ratio"] is not None:
            cpu = row["reconcile"]["cpu_s"] / row["duckdb"]["cpu_s"]
            lines.append(
                f"| {row['records']:,} | | reconcile / DuckDB | {row['ratio']:.2f} | {cpu:.2f} | | | | |"
            )
    return "\n".join(lines)
