"""One very large ledger, generated as sealed tables: time, memory, disk and cost per record of reconciling it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from benchmarks._measure import Row, measured, say
from benchmarks._tables import generate_tables
from benchmarks.generated.run_folders import Made

SAMPLE = 1_000_000  # attempts
SPARE = 1.1  # for pieces that Spark writes, and findings
LEFT_FREE = 2 << 30
PLANTS = 70


class NoRoom(SystemExit):
    """The ledger does not fit on the disk."""


def billion(folder: Path, records: int, sample: int = SAMPLE) -> Row:
    """Generate, reconcile and remove a ledger of this many attempts; bytes per attempt are measured on `sample` of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    need_room(folder, records, sample)
    began = time.perf_counter()
    made = generate_tables(folder, records, plants=PLANTS)
    generated_s, size = time.perf_counter() - began, bytes_in(made.run.tables)
    say(f"{made.records:,} attempts: generated in {generated_s:.1f} s, {_gb(size)}")
    row = {
        "records": made.records, "planted": made.expected, "generated_s": round(generated_s, 1), "disk_bytes": size,
        **_reconciled(made),
    }  # fmt: skip
    shutil.rmtree(folder)
    return row


def _reconciled(made: Made) -> Row:
    one = measured("tables", made)
    for anomaly, text in one["differs"].items():
        say(f"{made.records:,} attempts: {anomaly}: {text}")
    return {"reconcile": one, "as_planted": not one["differs"]}


def need_room(folder: Path, records: int, sample: int) -> None:
    """Print the arithmetic of the disk; raise NoRoom, with the number that would fit, if this many do not."""
    made = generate_tables(folder / "sample", min(records, sample), plants=0)
    each = bytes_in(made.run.tables) / made.records
    shutil.rmtree(folder / "sample")
    free = shutil.disk_usage(folder).free
    needed, fits = records * each * SPARE, most_that_fit(free, each)
    say(
        f"{records:,} attempts x {each:.1f} bytes (measured on {made.records:,}) x {SPARE} = {_gb(needed)}; "
        f"free: {_gb(free)}, of which {_gb(LEFT_FREE)} stay free; at most {fits:,} attempts fit"
    )
    if records > fits:
        raise NoRoom(f"--billion {records}: does not fit on the disk of {folder}; at most {fits} attempts do")


def most_that_fit(free: int, each: float) -> int:
    """Attempts of `each` bytes, in millions where there are that many."""
    count = max(0, int((free - LEFT_FREE) / (each * SPARE)))
    return count - count % 1_000_000 if count >= 1_000_000 else count


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _gb(size: float) -> str:
    return f"{size / 1e9:.2f} GB"


def describe_billion(row: Row) -> str:
    one, records = row["reconcile"], row["records"]
    if not one["seconds"]:
        return f"{records:,} attempts as sealed tables: reconciling failed"
    peaks = " + ".join(str(mb) for mb in one["peak_mb"].values())
    return (
        f"{records:,} attempts as sealed tables, {_gb(row['disk_bytes'])} ({row['disk_bytes'] / records:.1f} bytes each), "
        f"generated in {row['generated_s']:.0f} s; reconciled in {one['seconds']:.1f} s, {one['cpu_s']:.1f} CPU s "
        f"({one['cpu_s'] / records * 1e6:.2f} CPU us and {one['seconds'] / records * 1e6:.2f} us each), "
        f"{peaks} MB, {one['together_mb']:,} MB at once; "
        f"{'found as planted' if row['as_planted'] else 'NOT found as planted'}"
    )
