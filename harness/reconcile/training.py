"""`python -m harness.reconcile.training FOLDER`: a session whose classes become the archive of later ones.

It does once what reconciling does: real runs, sound and unsound, go through the real job. Should that fail, plain
queries of the same kinds have loaded most of the classes already; an archive that lacks some is still good. What
failed is in the log of the set-up.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from harness.provision import spark_archive
from harness.reconcile import session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

DUMP_LIMIT_S = 120.0


def main(folder: Path) -> int:
    spark = session.spark(train=folder / spark_archive.CLASSES)
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    with TemporaryDirectory(prefix="onceproof-training-") as scratch:
        for work in (plain_queries, whole_runs):
            try:
                work(spark, Path(scratch))
            except Exception:  # noqa: BLE001  what it loaded so far is worth keeping
                traceback.print_exc()
    session.stop(DUMP_LIMIT_S)  # the JVM writes the archive on its way out
    return int(process.returncode)


def plain_queries(spark: SparkSession, scratch: Path) -> None:
    def again(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    rows = spark.range(2000).selectExpr(
        "id", "id % 7 AS k", "CAST(id AS string) AS text", "id % 3 = 0 AS flag"
    )
    rows.write.mode("overwrite").partitionBy("k").parquet(str(scratch / "rows"))
    stored = spark.read.parquet(str(scratch / "rows"))
    mapped = stored.select("id", "k").mapInArrow(again, "id bigint, k int")
    summed = mapped.groupBy("k").agg({"id": "sum"}).withColumnRenamed("sum(id)", "total")
    joined = stored.join(summed, on="k", how="left").selectExpr(
        "*", "row_number() OVER (PARTITION BY k ORDER BY id) AS rank", "collect_list(text) OVER (PARTITION BY k) AS all"
    )  # fmt: skip
    joined.where("rank <= 5 AND flag").collect()
    joined.distinct().toArrow()


def whole_runs(spark: SparkSession, scratch: Path) -> None:
    from harness.assess import assess_many
    from harness.contracts import Mode
    from harness.testing.ledgers import LiteralRun

    sound = LiteralRun(scratch, name="sound", mode=Mode.EXACTLY_ONCE)
    sound.session(1)
    sound.write(1, 30, 0, txn=1)
    sound.end(1, 1)
    unsound = LiteralRun(scratch, name="unsound", scheduled=1)
    unsound.session(1)
    unsound.write(1, 30, 0)
    unsound.window()
    unsound.write(1, 30, 1)
    unsound.log.remove(next(record for record in unsound.log if record.seq == 40))
    unsound.log.append(unsound.sent[7].at(0, 40))
    assess_many([sound.finish(), unsound.finish()], spark)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
