"""reconcile and judge stored runs again, from their files alone

Runs are folders of this machine or URLs that Hadoop can read (hdfs://, s3a://, file:///); Spark runs in this process
or on any cluster. See docs/spark.md.
Exit codes: 0 all as the manifest expects, 1 a promise violated (or a control missed), 3 inconclusive, 2 bad input.
A run that cannot be read is reported by name, the others get their verdicts, and the exit code is at least 2.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.runtime.terminal import printable

BAD_INPUT = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        help="run folder, or folder that contains run folders; a path or a URL",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line for each run")
    parser.add_argument(
        "--seal-only", action="store_true", help="only make tables/, for an upload; judge nothing"
    )
    cluster = parser.add_argument_group("where Spark runs")
    cluster.add_argument(
        "--master",
        default=None,
        help="Spark master: local[N], spark://HOST:PORT, yarn or k8s://URL (default: local[*])",
    )
    cluster.add_argument(
        "--python",
        metavar="PATH",
        help="Python of the executors (default: PYSPARK_PYTHON, else the path of this Python)",
    )
    cluster.add_argument(
        "--memory",
        metavar="SIZE",
        default=None,
        help="memory for the driver and each executor, e.g. 4g (default: 1200m)",
    )
    cluster.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of Spark, e.g. spark.executor.cores=2; may be repeated",
    )
    cluster.add_argument(
        "--package",
        metavar="ZIP",
        type=Path,
        help="write this program as a zip file for spark-submit, and exit",
    )


def run(args: argparse.Namespace) -> int:
    from harness.errors import UsageError

    more = _settings(args.conf)
    if args.package is not None:
        return _package(args.package)
    if not args.runs:
        raise UsageError("reconcile: no RUN given; name a run folder, e.g. runs/")
    if args.seal_only:
        return _seal(args.runs)
    return _judge(args, more)


def _judge(args: argparse.Namespace, more: dict[str, str]) -> int:
    from harness.ledger.rundir import find_runs
    from harness.reconcile import run_locations
    from harness.reconcile.spark import jvm, masters, session
    from harness.spark_submit import judge_runs

    # A path that is not a run folder is reported before Spark starts.
    find_runs([Path(text) for text in args.runs if not run_locations.is_url(text)])
    master = args.master or session.MASTER
    first = not session.started()
    spark = session.spark(master, args.memory or session.MEMORY, python=args.python, more=more)
    if first:
        jvm.report_missing_archive(master)
    code = judge_runs(args.runs, spark, as_json=args.json)
    for executor in masters.executors_work(spark.sparkContext):
        print(f"spark: {executor}", file=sys.stderr)
    return code


def _seal(texts: list[str]) -> int:
    from harness.errors import OnceproofError
    from harness.reconcile import run_locations

    code = 0
    with run_locations.opened(texts, None) as runs:
        for one in runs:
            try:
                run_locations.sealed_at(one)
            except OnceproofError as error:
                if len(runs) == 1:
                    raise
                print(f"onceproof: {printable(error)}", file=sys.stderr)
                code = BAD_INPUT
            else:
                print(printable(one.tables))
    return code


def _package(place: Path) -> int:
    from harness import spark_submit
    from harness.errors import UsageError
    from harness.reconcile.spark.package import make_package

    try:
        make_package(place)
    except OSError as error:
        raise UsageError(
            f"--package {place}: cannot be written: {error.strerror}; name a file in a folder that exists"
        ) from error
    print(place)
    print(
        f"next: spark-submit --master … --py-files {place} {Path(spark_submit.__file__)} RUN…",
        file=sys.stderr,
    )
    return 0


def _settings(words: list[str]) -> dict[str, str]:
    from harness.errors import UsageError

    for word in words:
        if "=" not in word:
            raise UsageError(f"--conf {word}: write NAME=VALUE, e.g. spark.executor.cores=2")
    return {name: value for name, _, value in (word.partition("=") for word in words)}
