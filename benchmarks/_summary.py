"""The measurements, as the Markdown table of docs/performance.md: one line a question, ratios of this run only."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks._measure import Row

HEAD = "| what | measured | ratio within this run |\n|---|---|---|"


def summary(found: Row) -> str:
    return "\n".join([HEAD, *(f"| {' | '.join(line)} |" for line in _lines(found))])


def _lines(found: Row) -> Iterator[tuple[str, str, str]]:
    for row in found["sizes"]:
        yield from _against_duckdb(row, "")
        if row["seal"]["seconds"]:
            speed = f"{row['seal']['records_per_s']:,} records/s, {row['seal']['cpu_s']:.1f} CPU s"
            yield f"sealing {_size(row)}", speed, _ratio(row["seal"], row["reconcile"], "of reconcile")
    if "warm" in found:
        yield _warm(found["warm"])
    if "runs_together" in found:
        row = found["runs_together"]
        measured = f"{row['together_s']:.1f} s against {row['one_by_one_s']:.1f} s{_wrong(row)}"
        what = f"{row['runs']} runs of {row['records_each']:,} records in one job, against one by one, warm"
        yield what, measured, f"{row['ratio']:.1f} times"
    if "many_in_doubt" in found:
        yield from _against_duckdb(found["many_in_doubt"], ", half lost, a tenth of the others reordered")
    if "billion" in found:
        row = found["billion"]
        one = row["reconcile"]
        disk = f"{row['disk_bytes'] / row['records']:.1f} bytes of disk"
        each = f"{one['cpu_s'] / row['records'] * 1e6:.2f} CPU us, {disk} each" if one["seconds"] else ""
        yield f"reconcile {_size(row)} as sealed tables", _cost(one) + _wrong(row), each


def _against_duckdb(row: Row, kind: str) -> Iterator[tuple[str, str, str]]:
    ours, theirs = row["reconcile"], row["duckdb"]
    what = f"reconcile {_size(row)}{kind}, from process start, against DuckDB"
    yield what, f"{_cost(ours)} against {_cost(theirs)}{_wrong(row)}", _ratio(ours, theirs)


def _warm(row: Row) -> tuple[str, str, str]:
    later, cpu = row["later_s"], row["later_cpu_s"]
    mean, mean_cpu = sum(later) / len(later), sum(cpu) / len(cpu)
    what = f"{_size(row)} with findings, sealing included: warm session against process start"
    times = ", ".join(f"{seconds:.1f}" for seconds in later)
    measured = f"{times} s ({mean_cpu:.1f} CPU s each) against {row['first_s']:.1f} s ({row['first_cpu_s']:.1f} CPU s)"
    ratio = f"{mean / row['first_s']:.2f} wall, {mean_cpu / row['first_cpu_s']:.2f} CPU"
    return what, measured + _wrong(row), ratio


def _size(row: Row) -> str:
    return f"{row['records']:,} attempts"


def _cost(one: Row) -> str:
    if not one["seconds"]:
        return "failed"
    return f"{one['seconds']:.1f} s, {one['cpu_s']:.1f} CPU s, {one['together_mb']:,} MB"


def _ratio(one: Row, other: Row, of: str = "") -> str:
    if not one["seconds"] or not other["seconds"]:
        return ""
    wall, cpu = one["seconds"] / other["seconds"], one["cpu_s"] / other["cpu_s"]
    return f"{wall:.2f} wall, {cpu:.2f} CPU {of}".strip()


def _wrong(row: Row) -> str:
    return "" if row["as_planted"] else "; NOT found as planted"
