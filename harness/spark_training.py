"""`python -m harness.spark_training FOLDER`: a session whose classes become the class archive of later sessions.

It does once everything that Spark does for reconciling: pieces of tables are mapped and grouped as Arrow, then real runs, sound and
unsound, go through the real job, once with few rows in doubt, which the driver judges, and once as if they were many,
which tasks merge and judge. An archive that lacks some classes is still good, so a failure of one step does not end the
others; it is in the log of the set-up. Tables that Spark itself reads, those of other file systems, are left out.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from harness.provision import spark_archive
from harness.provision.background_archive import yield_to_others
from harness.reconcile.spark import session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from harness.ledger.rundir import RunDir

DUMP_LIMIT_S = 600.0  # seconds on an idle machine; in the background it has the lowest priority
MEMORY = "700m"  # the archive serves any size, and a cluster may be running beside this


def main(folder: Path) -> int:
    spark = session.spark(memory=MEMORY, train=folder / spark_archive.CLASSES)
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    yield_to_others(process.pid)
    with TemporaryDirectory(prefix="onceproof-training-") as scratch:
        for work in (moved_pieces, judged_in_driver, judged_in_tasks):
            try:
                work(spark, Path(scratch, work.__name__))
            except Exception:  # noqa: BLE001  the classes loaded so far are worth keeping
                traceback.print_exc()
    session.stop(DUMP_LIMIT_S)  # the JVM writes the archive when it ends
    return int(process.returncode)


def moved_pieces(spark: SparkSession, _scratch: Path) -> None:
    """Use everything that the job needs of Spark: map, group, keep, filter, unite and collect pieces."""
    from pyspark import StorageLevel

    from harness.reconcile.spark.pieces import PIECE, Subject, piece

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield piece(Subject.RESULT, "rows", batch, share=batch.num_rows % 3)

    def same(table: pa.Table) -> pa.Table:
        return table

    mapped = spark.range(0, 2000, 1, 4).mapInArrow(packed, PIECE)
    mapped.toArrow()
    kept = mapped.groupBy("share").applyInArrow(same, PIECE).persist(StorageLevel.DISK_ONLY)
    more = spark.createDataFrame(kept.toArrow(), kept.schema)
    list(kept.unionAll(more).where(f"subject = '{Subject.RESULT}'").select("rows").toLocalIterator())


def judged_in_driver(spark: SparkSession, scratch: Path) -> None:
    from harness.assessment import assess_many

    assess_many([_sound(scratch, "sound"), _unsound(scratch)], spark)


def judged_in_tasks(spark: SparkSession, scratch: Path) -> None:
    """Reconcile enough runs for tasks to seal them, and let tasks merge summaries and judge rows, however few there are."""
    from harness.assessment import assess_many
    from harness.reconcile.run_locations import MANY
    from harness.reconcile.spark.sizes import ALL_IN_TASKS

    runs = [_unsound(scratch), *(_sound(scratch, f"sound-{number}") for number in range(MANY))]
    assess_many(runs, spark, sizes=ALL_IN_TASKS)


def _sound(scratch: Path, name: str) -> RunDir:
    from harness.contracts import Mode
    from harness.ledger.literal_run import LiteralRun

    sound = LiteralRun(scratch, name=name, mode=Mode.EXACTLY_ONCE)
    sound.session(1)
    sound.write(1, 30, 0, txn=1)
    sound.end(1, 1)
    return sound.finish()


def _unsound(scratch: Path) -> RunDir:
    """A run with a lost, a duplicated and a reordered message."""
    from harness.ledger.literal_run import LiteralRun

    unsound = LiteralRun(scratch, name="unsound", scheduled=1)
    unsound.session(1)
    unsound.write(1, 30, 0)
    unsound.window()
    unsound.write(1, 30, 1)
    unsound.log.remove(next(record for record in unsound.log if record.seq == 40))
    unsound.log.append(unsound.sent[7].at(0, 40))
    return unsound.finish()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
