"""The product on the ledgers that benchmarks.reconcile generates: what was planted is found, wherever offsets begin."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.generated.doubtful import generate_doubtful
from benchmarks.generated.run_folders import Made, generate
from benchmarks.reconcile import differences
from harness.reconcile.job import reconcile_many
from harness.reconcile.screen import screen, summaries
from harness.reconcile.screen.facts import facts as facts_of
from harness.reconcile.seal.seal import seal
from harness.reconcile.spark import stored_tables
from harness.reconcile.spark.sizes import Sizes
from harness.reconcile.spark.source import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIGH = 1 << 40


def test_planted_anomalies_are_found_at_low_and_high_offsets(spark: SparkSession, tmp_path: Path) -> None:
    made = [
        generate(tmp_path, 10_000, base_offset=base, plants=plants, scenario=f"{plants}-from-{base}")
        for base in (0, HIGH)
        for plants in (7, 0)
    ]
    for one, result in zip(made, reconcile_many([one.run for one in made], spark), strict=True):
        assert result["crashed"] == {}
        assert differences(one.expected, result["counts"]) == {}


def test_many_in_doubt_are_counted_exactly_when_sessions_are_divided(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = generate_doubtful(tmp_path, 20_000)
    divided = Sizes(judged_in_driver=-1, stretch_bits=9)  # a transaction is in two or three shares
    (result,) = reconcile_many([made.run], spark, sizes=divided)
    assert result["crashed"] == {}
    assert differences(made.expected, result["counts"]) == {}
    torn = [one for one in result["findings"] if one["anomaly"] == "torn"]
    assert all(len(one["messages"]) == int(one["evidence"]["missing"]) > 400 for one in torn)


def test_memory_follows_the_records_not_their_offsets(spark: SparkSession, tmp_path: Path) -> None:
    low, high, twice = (
        _summary_rows(spark, generate(tmp_path, records, base_offset=base, scenario=f"{records}-from-{base}"))
        for records, base in ((10_000, 0), (10_000, HIGH), (20_000, HIGH))
    )
    assert low == high
    assert all(count <= 2.5 * low[name] for name, count in twice.items())


def _summary_rows(spark: SparkSession, made: Made) -> Counter[str]:
    """Return the number of rows that the kernels make of attempts and log, and the number that the driver gets."""
    sealed = seal(made.run)
    own = Files(spark, {sealed.run: made.run.tables})
    facts = facts_of(stored_tables.read_small({made.run.tables: sealed}), [sealed])
    rows = Counter(driver=len(screen.screen(own, facts, records=0).rows[summaries.SUMMARY[0]]))
    for name in ("attempts", "log"):
        kernel, columns = screen.READ[name]
        batches = pq.read_table(made.run.tables / name).to_batches()
        for _, arrays in screen.by_runs(batches, columns):
            rows[name] += len(kernel(arrays, facts[0])[summaries.SUMMARY[0]])
    return rows
