"""Files through Hadoop: what is replaced, what is left, and errors in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from harness.assessment import assess_many
from harness.errors import LedgerError, UsageError
from harness.ledger.literal_run import LiteralRun
from harness.reconcile.run_locations import is_url, opened
from harness.reconcile.spark.hadoop_files import HadoopStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_writing_and_moving_replace_and_leave_no_draft(spark: SparkSession, tmp_path: Path) -> None:
    storage, root = HadoopStorage(spark), tmp_path

    def place_of(path: Path) -> str:
        return f"file://{path}"

    place = place_of(root / "a b.json")
    assert not storage.exists(place)
    storage.write_text(place, "first")
    storage.write_text(place, "über\n")
    assert storage.read_text(place) == "über\n"
    assert (root / "a b.json").read_text(encoding="utf-8") == "über\n"
    (root / "from" / "deep").mkdir(parents=True)
    (root / "from" / "deep" / "x").write_bytes(b"\0\1")
    (root / "to").mkdir()
    (root / "to" / "old").touch()
    storage.put(root / "from", place_of(root / "to"))
    assert storage.names(place_of(root / "to")) == ["deep"], "the old content is replaced"
    storage.fetch(place_of(root / "to"), root / "back")
    assert (root / "back" / "deep" / "x").read_bytes() == b"\0\1"
    storage.rename(place_of(root / "to"), place_of(root / "moved"))
    assert storage.exists(place_of(root / "moved" / "deep" / "x"))
    assert not storage.exists(place_of(root / "to"))
    storage.delete(place_of(root / "moved"))
    storage.delete(place_of(root / "moved"))
    assert sorted(path.name for path in root.iterdir()) == ["a b.json", "back", "from"], "drafts were left"


def test_errors_of_hadoop_are_one_line(spark: SparkSession, tmp_path: Path) -> None:
    storage = HadoopStorage(spark)
    with pytest.raises(UsageError, match=r"^nonsense://x/y: Spark has no file system of this kind") as raised:
        storage.exists("nonsense://x/y")
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match=r"none: .*FileNotFound") as raised:
        storage.read_text(f"file://{tmp_path}/none")
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match="no run folder found"), opened([tmp_path.as_uri()], spark):
        pass


def test_a_run_elsewhere_is_judged_there_and_not_when_a_part_is_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Under another name than its own, as uploads are; the second time from its tables alone."""
    literal = LiteralRun(tmp_path)
    literal.session(1)
    literal.session(2)
    literal.write(1, 10, 0)
    literal.write(2, 10, 1)
    literal.log.remove(next(record for record in literal.log if record.seq == 5))
    folder = literal.finish().path.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with opened([folder.as_uri()], spark) as runs:
            ((reconciled, judgement),) = assess_many(runs, spark)
        assert reconciled["counts"]["lost"] == 1
        assert json.loads((folder / "verdict.json").read_text(encoding="utf-8")) == judgement.to_json()
        assert [row["anomaly"] for row in pq.read_table(folder / "findings.parquet").to_pylist()].count(
            "lost"
        ) == 1
        shutil.rmtree(folder / "ledger", ignore_errors=True)
        (folder / "verdict.json").unlink()
    next((folder / "tables" / "attempts").glob("*.parquet")).unlink()
    whole = pytest.raises(
        LedgerError, match="tables/attempts: 10 rows, but sealing wrote 20: not a whole table"
    )
    with opened([folder.as_uri()], spark) as runs, whole:
        assess_many(runs, spark)
    assert not (folder / "verdict.json").exists()


def test_two_copies_of_a_run_in_one_job_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    literal = LiteralRun(tmp_path)
    literal.session(1)
    literal.write(1, 3)
    folder = literal.finish().path
    copy = shutil.copytree(folder, tmp_path / "copy")
    with opened([str(folder), str(copy)], spark) as runs, pytest.raises(UsageError, match="the same run as"):
        assess_many(runs, spark)


def test_urls_are_recognised() -> None:
    assert all(map(is_url, ("s3a://b/x", "hdfs:///x", "file:///x", "file:/x")))
    assert not any(map(is_url, ("runs/x", "/runs/x", "./a:b", "a:b")))
