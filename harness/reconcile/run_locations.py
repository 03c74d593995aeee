"""Run folders wherever Spark can read them: on this machine, or on any file system that Hadoop knows.

A run elsewhere (hdfs://, s3a://, file:///) has a mirror on this machine with its small files; Spark reads the tables
and writes the findings in the run folder itself. A ledger that was never sealed is copied here, sealed, and its tables
are put back. A run on this machine is its own mirror, and none of this touches the JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from harness.errors import LedgerError, OnceproofError, UsageError
from harness.ledger.rundir import RunDir, find_runs
from harness.reconcile.seal.schema import SMALL
from harness.reconcile.seal.seal import seal
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.seal.untrusted_tables import need_during, need_no_links, read_sealed, span, unsound
from harness.reconcile.spark.hadoop_files import HadoopStorage
from harness.reconcile.spark.masters import first_line, on_cluster
from harness.reconcile.spark.source import TASKS_A_CORE
from harness.runtime.disk_space import room_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY = 8  # runs; from here on Spark tasks seal them
SEALED = "sealed.json"  # in tables/: the result of sealing besides the tables


@dataclass(frozen=True)
class DistantRun(RunDir):
    """A run folder elsewhere; `path` is its mirror on this machine."""

    url: str
    storage: HadoopStorage

    def need_own_files(self) -> None:
        """Do nothing: this process made the mirror, and the ledger may be elsewhere only."""


def is_url(text: str) -> bool:
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:/", text) is not None


@contextmanager
def opened(texts: Sequence[str], spark: SparkSession | None) -> Iterator[list[RunDir]]:
    """Yield every run folder at or beneath the places, in their order; mirrors exist as long as the `with`."""
    with TemporaryDirectory(prefix="onceproof-mirror-") as scratch:
        runs: dict[str, RunDir] = {}
        for number, text in enumerate(texts):
            if not is_url(text):
                runs |= {str(run.path): run for run in find_runs([Path(text)])}
            elif spark is None:
                raise UsageError(
                    f"{text}: this command reads only folders of this machine; copy the run here"
                )
            else:
                mirrors = Path(scratch, str(number))
                runs |= {run.url: run for run in _distant(text.rstrip("/"), HadoopStorage(spark), mirrors)}
        yield list(runs.values())


def _distant(url: str, storage: HadoopStorage, mirrors: Path) -> Iterator[DistantRun]:
    whole = f"{url}/manifest.json"
    manifests = [whole] if storage.exists(whole) else storage.find(url, "manifest.json")
    if not manifests:
        raise UsageError(f"{url}: no run folder found: there is no manifest.json at or below it")
    for number, manifest in enumerate(manifests):
        place = manifest.removesuffix("/manifest.json")
        scenario, name = place.split("/")[-2:]
        # The folder above it may be a bucket or a drive.
        mirror = mirrors / str(number) / (scenario or "run") / name
        mirror.mkdir(parents=True)
        storage.fetch(manifest, mirror / "manifest.json")
        yield DistantRun(mirror, place, storage)


# --- for the job ---


def sealed_at(run: RunDir) -> Sealed:
    """Return the result of sealing. A run of this machine is always sealed again; one elsewhere only if it is not sealed."""
    if not isinstance(run, DistantRun):
        return seal(run)
    need_no_links(run.url)
    run.read_manifest()
    if run.storage.exists(f"{run.url}/tables/{SEALED}"):
        run.tables.mkdir(exist_ok=True)
        for name in (SEALED, *SMALL):
            run.storage.fetch(f"{run.url}/tables/{name}", run.tables / name)
        return read_sealed(run, SEALED)
    packed = f"{run.url}/{run.packed_ledger.name}"
    if run.storage.exists(packed):
        run.storage.fetch(packed, run.packed_ledger)
    elif run.storage.exists(f"{run.url}/ledger"):
        run.storage.fetch(f"{run.url}/ledger", run.ledger)
    else:
        raise LedgerError(
            f"{run.url}: neither tables/{SEALED} nor ledger/ is there (is this a whole run folder?)"
        )
    saw = seal(run)
    run.storage.put(run.tables, f"{run.url}/tables")
    return saw


def sealed_together(runs: Sequence[RunDir], spark: SparkSession) -> list[Sealed]:
    """Seal many runs and return the results in order; raise for the first that cannot be sealed."""
    together = []
    for one in sealed_or_refused(runs, spark):
        if isinstance(one, OnceproofError):
            raise one
        together.append(one)
    return together


def sealed_or_refused(runs: Sequence[RunDir], spark: SparkSession) -> list[Sealed | OnceproofError]:
    """Return the result of sealing each run, or why it was refused, in order: one bad run does not hide the others.

    Many runs of this machine are sealed on all its cores, by Spark tasks.
    """
    here = [run for run in runs if not isinstance(run, DistantRun)]
    context = spark.sparkContext
    if len(here) < MANY or on_cluster(str(context.master)):
        return [_sealed_or_why_not(run) for run in runs]
    tasks = min(len(here), TASKS_A_CORE * context.defaultParallelism)
    saw = iter(context.parallelize(here, tasks).map(_sealed_or_why_not).collect())
    return [_sealed_or_why_not(run) if isinstance(run, DistantRun) else next(saw) for run in runs]


def _sealed_or_why_not(run: RunDir) -> Sealed | OnceproofError:
    """Return the error of `seal` instead of raising it: Spark would turn one line into a page."""
    try:
        return sealed_at(run)
    except OnceproofError as error:
        return error
    except OSError as error:
        return room_error(error, run.path) or LedgerError(
            f"{error.filename or run.path}: {error.strerror or error}"
        )


def numbered(runs: Sequence[RunDir], saw: Sequence[Sealed]) -> dict[int, RunDir]:
    """Return the runs by their numbers in all tables."""
    by_number: dict[int, RunDir] = {}
    for run, one in zip(runs, saw, strict=True):
        need_another(by_number, run, one)
    return by_number


def need_another(by_number: dict[int, RunDir], run: RunDir, sealed: Sealed) -> None:
    """Add the run by its number. Raise for a second copy of a run: both would count as one run with twice the rows."""
    if (same := by_number.setdefault(sealed.run, run)) is not run:
        raise UsageError(
            f"{place_of(run)}: the same run as {place_of(same)}, {sealed.run_id}; pass only one of them"
        )


def need_whole(tables: Mapping[str, DataFrame], runs: Sequence[RunDir], saw: Sequence[Sealed]) -> None:
    """Raise unless all rows of all tables are there: tables uploaded in part would look like a smaller run."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    distant = {one.run: (run, one) for run, one in zip(runs, saw, strict=True) if isinstance(run, DistantRun)}
    if not distant:
        return
    counts = [
        frame.groupBy("run")
        .agg(
            f.expr("count(1) AS n"),
            f.expr(f"count_if({unsound(name, dict(frame.dtypes))}) AS unsound"),
            *(f.expr(text) for text in span(dict(frame.dtypes))),
        )
        .select(f.lit(name).alias("name"), "run", "n", "unsound", "first", "last")
        for name, frame in tables.items()
    ]
    try:
        rows = reduce(DataFrame.unionAll, counts).collect()
    except (Py4JJavaError, PySparkException) as error:
        raise LedgerError(f"the tables of the runs cannot be read: {first_line(error)}") from error
    found = {(row["name"], row["run"]): row for row in rows}
    for number, (run, one) in distant.items():
        for name in tables:
            row = found.get((name, number))
            there, expected = row["n"] if row else 0, one.rows[name]
            if row:
                need_during(f"{place_of(run)}/tables/{name}", row["first"], row["last"], one)
            if row and (strange := row["unsound"]):
                raise LedgerError(
                    f"{place_of(run)}/tables/{name}: {strange} rows have impossible values; upload the tables again"
                )
            if there != expected:
                raise LedgerError(
                    f"{place_of(run)}/tables/{name}: {there} rows, but sealing wrote {expected}: not a whole table"
                )


def place_of(run: RunDir) -> str:
    """Return the place of the run folder as Spark reads it."""
    return run.url if isinstance(run, DistantRun) else str(run.path)


def publish(run: RunDir, *results: Path) -> None:
    """Copy files from the mirror to the run folder."""
    if isinstance(run, DistantRun):
        for path in results:
            run.storage.put(path, f"{run.url}/{path.name}")
