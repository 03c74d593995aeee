"""The entry for spark-submit: `spark-submit --master … --py-files onceproof.zip submit.py RUN…`.

`make_package` makes that zip: the packages of this project that a job needs. Other packages that it needs are pyspark, pyarrow,
numpy, polars and, because pyspark needs it, pandas; nothing of Kafka.
Exit codes are those of `./onceproof reconcile` (docs/exit-codes.md).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def judge_runs(texts: Sequence[str], spark: SparkSession, *, as_json: bool) -> int:
    """Reconcile and judge the runs at these places in one job, print the verdicts, return the exit code."""
    from harness.assessment import assess_each
    from harness.errors import OnceproofError
    from harness.reconcile import run_locations
    from harness.runtime.terminal import printable
    from reports import summary
    from reports.model import UNREADABLE, RunReport

    with run_locations.opened(texts, spark) as runs:
        print(f"reconciling {len(runs)} run(s) in one job", file=sys.stderr)
        rows = []
        for one, assessed in zip(runs, assess_each(runs, spark, OnceproofError), strict=True):
            place = run_locations.place_of(one)
            if isinstance(assessed, OnceproofError):
                if len(runs) == 1:
                    raise assessed
                print(f"onceproof: {printable(assessed)}", file=sys.stderr)
                rows.append(RunReport.unreadable(one, assessed))
                row: dict[str, Any] = {"run": place, "verdict": UNREADABLE, "error": rows[-1].error}
            else:
                reconciled, judgement = assessed
                rows.append(RunReport.read(one))
                row = {"run": place, **judgement.to_json()}
                row |= {name: reconciled[name] for name in ("counts", "compared")}
            if as_json:
                print(json.dumps(row))
        if not as_json:
            print(summary.table(rows, colour=sys.stdout.isatty()))
        return summary.exit_code(rows)


def main(words: Sequence[str]) -> int:
    from harness.runtime import exits

    return exits.guarded(lambda: _submitted(words))


def _submitted(words: Sequence[str]) -> int:
    from pyspark.sql import SparkSession

    from harness.reconcile.spark import masters, session

    parser = argparse.ArgumentParser(prog="submit.py", allow_abbrev=False)
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run folders; paths or URLs")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each run, one a line")
    args = parser.parse_args(words)
    builder = SparkSession.builder.appName("onceproof")
    for name, value in session.FOR_THE_JOB.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    masters.spread(spark)
    session.adopt(spark)
    try:
        return judge_runs(args.runs, spark, as_json=args.json)
    finally:
        spark.stop()


if __name__ == "__main__":
    # Python puts the folder of a script first on the module path; no module here may be imported by its short name.
    sys.path[:] = [
        entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent
    ]
    sys.exit(main(sys.argv[1:]))
