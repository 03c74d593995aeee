"""The cost of reconciling: sealing, the product on the sealed tables, and DuckDB on the same tables, from the start
of a fresh process to its results; and many runs in one job against one after the other.

Each ledger has anomalies planted in it, a few of every kind, as many in 50 million records as in ten thousand; with
--many-in-doubt half of all messages are lost and a tenth of the others reordered. The engines have to find exactly those, or
the benchmark fails. Only ratios within one run say much about the engines; everything else is about this machine.

Each option of a part runs that part; without any, all parts run but --billion, with their defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks._billion import billion, describe_billion
from benchmarks._measure import Row, differences, measure, say, table
from benchmarks._summary import summary
from benchmarks._together import many, together_text
from benchmarks._warm import warm
from benchmarks.generated.doubtful import generate_doubtful
from benchmarks.generated.run_folders import SMALLEST, Made, generate

__all__ = ["differences", "main"]

DEFAULTS = {"sizes": "10k,1m,10m,50m", "warm": "10k", "runs_together": "200", "many_in_doubt": "10m"}
BILLION = "1000m"
PLANTS = 7


def main(argv: list[str]) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if not any(getattr(args, part) for part in (*DEFAULTS, "billion")):
        vars(args).update(DEFAULTS)
    sizes = [_number(size) for size in (args.sizes or "").split(",") if size]
    for part in ("warm", "many_in_doubt", "billion"):
        setattr(args, part, _number(getattr(args, part) or "0"))
    asked = [*sizes, *filter(None, (args.warm, args.many_in_doubt, args.billion))]
    if any(size < SMALLEST for size in asked):
        parser.error(f"at least {SMALLEST} records are needed")
    found: Row = {"base_offset": _number(args.base_offset), "cores": os.cpu_count(), "sizes": []}
    with _folder(args.keep) as folder:
        for part, row in _parts(args, sizes, folder):
            if part == "sizes":
                found["sizes"].append(row)
            else:
                found[part] = row
            if args.json is not None:  # after each: the large ones may take an hour
                args.json.write_text(json.dumps(found, indent=1) + "\n")
    _print(found)
    rows = [
        *found["sizes"],
        *(found[part] for part in (*DEFAULTS, "billion") if part != "sizes" and part in found),
    ]
    return 0 if all(row["as_planted"] for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks reconcile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def part(name: str, default: str, text: str) -> None:
        parser.add_argument(name, nargs="?", const=default, metavar="N", help=f"{text} (default: {default})")

    part("--sizes", DEFAULTS["sizes"], "records of each ledger that is compared with DuckDB")
    part("--warm", DEFAULTS["warm"], "records of a ledger that is reconciled four times in one session")
    part("--runs-together", DEFAULTS["runs_together"], "runs of 10,000 records in one job and one by one")
    part("--many-in-doubt", DEFAULTS["many_in_doubt"], "records of a ledger with most blocks in doubt")
    part("--billion", BILLION, "records of a ledger that is generated as sealed tables")
    parser.add_argument(
        "--base-offset", default="0", metavar="N", help="first offset, such as 2^40 (default: 0)"
    )
    parser.add_argument("--clean", action="store_true", help="plant nothing")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep the ledgers in this folder and use the ledgers that are already there",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write everything that was measured as JSON"
    )
    return parser


def _parts(args: argparse.Namespace, sizes: list[int], folder: Path) -> Iterator[tuple[str, Row]]:
    base, plants, keep = _number(args.base_offset), 0 if args.clean else PLANTS, args.keep is not None

    def ledger(records: int, name: str, make: Callable[[Path], Made]) -> Made:
        return _made(folder / f"{name}-{records}-{plants}-{base}", records, make, keep)

    def planted(records: int) -> Made:
        return ledger(records, "sizes", lambda into: generate(into, records, plants=plants, base_offset=base))

    for size in sizes:
        yield "sizes", measure(planted(size))
        _clear(folder, keep)
    if args.warm:
        yield "warm", warm(planted(args.warm))
        _clear(folder, keep)
    if args.runs_together:
        yield "runs_together", many(folder / "together", int(args.runs_together))
    if args.many_in_doubt:
        records = args.many_in_doubt
        made = ledger(records, "doubtful", lambda into: generate_doubtful(into, records, base_offset=base))
        yield "many_in_doubt", measure(made)
        _clear(folder, keep)
    if args.billion:
        yield "billion", billion(folder / "billion", args.billion)


def _print(found: Row) -> None:
    rows = [*found["sizes"], *([found["many_in_doubt"]] if "many_in_doubt" in found else [])]
    if rows:
        print(table(rows), flush=True)
    if "runs_together" in found:
        print(together_text(found["runs_together"]), flush=True)
    if "billion" in found:
        print(describe_billion(found["billion"]), flush=True)
    print("\n" + summary(found), flush=True)


def _number(text: str) -> int:
    """Parse a number: 10k, 1m, 2^40 or plain digits."""
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


def _clear(folder: Path, keep: bool) -> None:
    if not keep:
        shutil.rmtree(folder)
        folder.mkdir()


def _made(into: Path, records: int, make: Callable[[Path], Made], keep: bool) -> Made:
    """Return a generated ledger; use a kept one again."""
    about = into / "made.json"
    if keep and about.exists():
        from harness.ledger.rundir import RunDir

        stored = json.loads(about.read_text())
        say(f"{records:,} records: using the ledger that was kept")
        return Made(RunDir(Path(stored["run"])), stored["records"], stored["expected"])
    shutil.rmtree(into, ignore_errors=True)
    began = time.perf_counter()
    made = make(into)
    about.write_text(
        json.dumps({"run": str(made.run.path), "records": made.records, "expected": made.expected})
    )
    say(f"{records:,} records: generated in {time.perf_counter() - began:.1f} s")
    return made
