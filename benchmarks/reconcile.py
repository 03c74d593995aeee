"""What reconciling costs: sealing, the product on the sealed tables, and DuckDB on the same tables, from the start
of a fresh process to its results; and many runs in one job against one after the other.

Each ledger has a few anomalies of every kind planted in it, as many in 50 million records as in ten thousand. Both
engines have to find exactly those, or the benchmark fails. Only the ratio of times of one run says much about the
engines; everything else is about this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import _process
from benchmarks._generate import SMALLEST, Made, generate

SIZES = "10k,1m,10m,50m"
TOGETHER_RECORDS = 10_000
TOGETHER_SAMPLE = 20  # of the runs that are reconciled together, one by one
PLANTED_EVERY = 10  # of the runs that are reconciled together, one has anomalies

ENGINES = {"seal": "sealing", "reconcile": "reconcile (sealed)", "duckdb": "DuckDB"}

Row = dict[str, Any]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks reconcile", description=__doc__)
    parser.add_argument(
        "--sizes", default=SIZES, help=f"records of each ledger (default: {SIZES}); '' for none"
    )
    parser.add_argument(
        "--runs-together",
        type=int,
        default=200,
        metavar="N",
        help="runs of 10,000 records in one job; 0: skip",
    )
    parser.add_argument(
        "--base-offset", default="0", metavar="N", help="first offset, such as 2^40 (default: 0)"
    )
    parser.add_argument("--clean", action="store_true", help="plant nothing")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="leave the ledgers here, and take those that are here"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured as JSON")
    args = parser.parse_args(argv)
    base, plants = _number(args.base_offset), 0 if args.clean else 7
    sizes = [_number(size) for size in args.sizes.split(",") if size]
    if any(size < SMALLEST for size in sizes):
        parser.error(f"--sizes: at least {SMALLEST} records")
    told: Row = {"base_offset": base, "cores": os.cpu_count(), "sizes": [], "together": None}
    with _folder(args.keep) as folder:
        for size in sizes:
            told["sizes"].append(measure(_made(folder, size, plants, base, args.keep is not None)))
            _write(args.json, told)  # after each: the large ones may take an hour
            if args.keep is None:
                shutil.rmtree(folder)
                folder.mkdir()
        if sizes:
            print(table(told["sizes"]), flush=True)
        if args.runs_together:
            told["together"] = many(folder / "together", args.runs_together)
            _write(args.json, told)
            print(told_together(told["together"]), flush=True)
    good = all(one["as_planted"] for one in (*told["sizes"], told["together"]) if one is not None)
    return 0 if good else 1


def _write(path: Path | None, told: Row) -> None:
    if path is not None:
        path.write_text(json.dumps(told, indent=1) + "\n")


def _number(text: str) -> int:
    """10k, 1m, 2^40 or plain digits."""
    if match := re.fullmatch(r"(\d+)\^(\d+)", text.strip()):
        return int(int(match[1]) ** int(match[2]))
    if match := re.fullmatch(r"(\d+)([km]?)", text.strip().lower()):
        return int(match[1]) * {"": 1, "k": 1000, "m": 1_000_000}[match[2]]
    raise SystemExit(f"{text!r}: a number such as 10k, 1m or 2^40 is expected")


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="onceproof-bench-") as temp:
        made = Path(temp) / "ledgers"
        made.mkdir()
        yield made


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


# --- one ledger -----------------------------------------------------------------------------------


def _made(folder: Path, records: int, plants: int, base_offset: int, keep: bool) -> Made:
    """A generated ledger; one that was kept is taken again."""
    into = folder / f"{records}-{plants}-{base_offset}"
    about = into / "made.json"
    if keep and about.exists():
        from harness.rundir import RunDir

        told = json.loads(about.read_text())
        say(f"{records:,} records: taking the ledger that was kept")
        return Made(RunDir(into / "bench" / "made"), told["records"], told["expected"])
    shutil.rmtree(into, ignore_errors=True)
    began = time.perf_counter()
    made = generate(into, records, plants=plants, base_offset=base_offset)
    about.write_text(json.dumps({"records": made.records, "expected": made.expected}))
    say(f"{records:,} records: generated in {time.perf_counter() - began:.1f} s")
    return made


def measure(made: Made) -> Row:
    """Seal, reconcile and query one ledger, each in a process of its own."""
    row: Row = {"records": made.records, "planted": made.expected, "as_planted": True, "ratio": None}
    for what in ENGINES:
        row[what] = one = _measured(what, made)
        row["as_planted"] &= not one["differs"]
        told = f"{one['seconds']:.1f} s, {one['together_mb']} MB" if one["seconds"] else "failed"
        say(f"{made.records:,} records: {what}: {told} (load before it: {one['load']})")
        for anomaly, text in one["differs"].items():
            say(f"{made.records:,} records: {what}: {anomaly}: {text}")
    if row["reconcile"]["seconds"] and row["duckdb"]["seconds"]:
        row["ratio"] = round(row["reconcile"]["seconds"] / row["duckdb"]["seconds"], 2)
    return row


def _measured(what: str, made: Made) -> Row:
    load = round(os.getloadavg()[0], 1)  # seconds mean little when others use the machine
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
    """Anomalies of which not exactly the planted ones were found."""
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


# --- many runs ------------------------------------------------------------------------------------


def many(folder: Path, count: int) -> Row:
    """Runs of 10,000 records in one job, against some of them one after the other, in a warm session."""
    shutil.rmtree(folder, ignore_errors=True)
    made = [
        generate(folder, TOGETHER_RECORDS, plants=0 if number % PLANTED_EVERY else 2, seed=number, scenario=f"run-{number:03}")
        for number in range(count)
    ]  # fmt: skip
    say(f"{count} runs of {TOGETHER_RECORDS:,} records: generated")
    paths = folder / "runs.txt"
    paths.write_text("".join(f"{one.run.path}\n" for one in made))
    sample = min(TOGETHER_SAMPLE, count)
    measured = _process.run("many", str(paths), str(sample))
    told = measured.result
    wrong = {
        one.run.run_id: differs
        for one in made
        if (differs := differences(one.expected, told["counts"][str(one.run.path)]))
    }
    for run, differs in wrong.items():
        say(f"{run}: {differs}")
    if not told["same"]:
        say("a run reconciled by itself and the same run reconciled with others differ")
    one_by_one = told["one_by_one_s"] * count / sample
    shutil.rmtree(folder)
    return {
        "runs": count, "records_each": TOGETHER_RECORDS, "sample": sample, "one_by_one_s": round(one_by_one, 2),
        "together_s": round(told["together_s"], 2), "ratio": round(one_by_one / told["together_s"], 2),
        "peak_mb": measured.peak_mb, "together_mb": measured.together_mb,
        "as_planted": not wrong and told["same"],
    }  # fmt: skip


def told_together(row: Row) -> str:
    return (
        f"{row['runs']} runs of {row['records_each']:,} records, sealing included, warm session: "
        f"{row['together_s']:.1f} s in one job, {row['one_by_one_s']:.1f} s one by one "
        f"(from {row['sample']} of them), {row['ratio']:.1f} times as long; "
        f"{'found as planted' if row['as_planted'] else 'NOT found as planted'}"
    )
