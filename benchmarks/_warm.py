"""One ledger with findings, from process start and again and again in the same session."""

from __future__ import annotations

from benchmarks import _process
from benchmarks._measure import Row, differences, say
from benchmarks.generated.run_folders import Made

RUNS = 4  # in one session; the first one is cold


def warm(made: Made) -> Row:
    """Seal and reconcile in one process: `first` counts from process start, `later` are the others, in seconds."""
    measured = _process.run("again", str(made.run.path), str(RUNS))
    result = measured.result
    wrong: dict[str, str] = {}
    for counts in result["counts"]:
        wrong |= differences(made.expected, counts)
    for anomaly, text in wrong.items():
        say(f"{made.records:,} records, warm session: {anomaly}: {text}")
    first = measured.seconds - sum(result["seconds"][1:])
    return {
        "records": made.records, "first_s": round(first, 2), "later_s": result["seconds"][1:],
        "first_cpu_s": round(measured.cpu_s - sum(result["cpu_s"][1:]), 2), "later_cpu_s": result["cpu_s"][1:],
        "together_mb": measured.together_mb, "as_planted": not wrong,
    }  # fmt: skip
