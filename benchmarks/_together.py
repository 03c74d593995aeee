"""Many runs in one job, against some of them one after the other."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks import _process
from benchmarks._measure import Row, differences, say
from benchmarks.generated.run_folders import generate

TOGETHER_RECORDS = 10_000
TOGETHER_SAMPLE = 20  # of the runs that are reconciled together, one by one
PLANTED_EVERY = 10  # of the runs that are reconciled together, one has anomalies


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
    result = measured.result
    wrong = {
        one.run.run_id: differs
        for one in made
        if (differs := differences(one.expected, result["counts"][str(one.run.path)]))
    }
    for run, differs in wrong.items():
        say(f"{run}: {differs}")
    if not result["same"]:
        say("a run reconciled by itself and the same run reconciled with others differ")
    one_by_one = result["one_by_one_s"] * count / sample
    shutil.rmtree(folder)
    return {
        "runs": count, "records_each": TOGETHER_RECORDS, "sample": sample, "one_by_one_s": round(one_by_one, 2),
        "together_s": round(result["together_s"], 2), "ratio": round(one_by_one / result["together_s"], 2),
        "peak_mb": measured.peak_mb, "together_mb": measured.together_mb,
        "as_planted": not wrong and result["same"],
    }  # fmt: skip


def together_text(row: Row) -> str:
    return (
        f"{row['runs']} runs of {row['records_each']:,} records, sealing included, warm session: "
        f"{row['together_s']:.1f} s in one job, {row['one_by_one_s']:.1f} s one by one "
        f"(from {row['sample']} of them), {row['ratio']:.1f} times as long; "
        f"{'found as planted' if row['as_planted'] else 'NOT found as planted'}"
    )
