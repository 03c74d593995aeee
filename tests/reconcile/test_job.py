"""reconcile(): what it writes, and that a finder that raises never hides the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl
import pyarrow.parquet as pq
import pytest

from harness.contracts import Finder, Mode, Verdict
from harness.ledger.literal_run import LiteralRun
from harness.ledger.rundir import RunDir
from harness.reconcile.anomalies.duplicated import Duplicated
from harness.reconcile.anomalies.lost import Lost
from harness.reconcile.find.tables import MessageTables
from harness.reconcile.job import reconcile
from harness.verdict import Settings, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def violated(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Twenty messages, a fault window, twenty more of which one is lost, and one from before it twice in the log."""
    run = LiteralRun(tmp_path_factory.mktemp("runs"), scheduled=1)
    run.session(1)
    run.write(1, 20, 0)
    run.window()
    in_window = run.clock - 1_000_000_000
    run.write(1, 20, 1)
    run.log.remove(next(r for r in run.log if r.seq == 25))
    run.sent[25].t, run.sent[25].t_outcome = in_window - 1_000_000, in_window
    run.log.append(run.sent[7].at(0, 30))
    return run.finish()


@pytest.fixture(scope="module")
def reconciled(violated: RunDir, spark: SparkSession) -> Mapping[str, Any]:
    return reconcile(violated, spark)


def test_the_result_is_the_content_of_reconciled_json(
    violated: RunDir, reconciled: Mapping[str, Any]
) -> None:
    assert json.loads(violated.reconciled.read_text(encoding="utf-8")) == reconciled


def test_counts(reconciled: Mapping[str, Any]) -> None:
    found = {name: n for name, n in reconciled["counts"].items() if n}
    assert found == {
        "attempted": 40, "acked": 40, "in_log": 40, "in_log_uncommitted": 40, "delivered": 40, "lost": 1, "duplicated": 1,
    }  # fmt: skip
    assert reconciled["crashed"] == {}
    assert reconciled["compared"]["lost"] == 40


def test_a_finding_has_sender_place_time_and_window(reconciled: Mapping[str, Any]) -> None:
    lost = next(x for x in reconciled["findings"] if x["anomaly"] == "lost")
    assert (lost["topic"], lost["partition"], lost["offsets"], lost["sender"]) == (
        "orders",
        1,
        [5],
        "producer-1.0",
    )
    assert lost["window"] == 0
    assert lost["messages"] == ["producer-1.0-25"]
    for part in ("producer-1.0-25", "orders/1 offset 5", "fault window 0", f"{lost['t_s']:.3f} s"):
        assert part in lost["text"]
    duplicated = next(x for x in reconciled["findings"] if x["anomaly"] == "duplicated")
    assert duplicated["window"] is None
    assert duplicated["offsets"] == [7, 30]


def test_all_findings_are_in_parquet(violated: RunDir, reconciled: Mapping[str, Any]) -> None:
    rows = pq.read_table(violated.findings).to_pylist()
    assert {(row["anomaly"], row["window"]) for row in rows} == {("lost", 0), ("duplicated", None)}


def test_coverage_and_timeline(reconciled: Mapping[str, Any]) -> None:
    coverage, timeline = reconciled["coverage"], reconciled["timeline"]
    assert (coverage["progress_before"], coverage["progress_after"]) == (20, 19)
    assert coverage["drained"]
    assert coverage["reads"] == {"read_uncommitted": True, "read_committed": True}
    assert [(w["window"], w["bit"], w["healed"]) for w in coverage["windows"]] == [(0, True, True)]
    assert sum(timeline["attempted"]) == sum(timeline["acked"]) == sum(timeline["delivered"]) == 40
    assert len({len(values) for name, values in timeline.items() if name != "bucket_s"}) == 1
    assert reconciled["unavailable_s_max"] > 0
    assert reconciled["latency_ms"]["p50"] == pytest.approx(1.0, rel=0.02)


def test_the_verdict_follows(violated: RunDir, reconciled: Mapping[str, Any]) -> None:
    manifest = violated.read_manifest()
    judgement = judge(reconciled, Mode(manifest["scenario"]["guarantee"]), Settings.of(manifest, reconciled))
    assert judgement.verdict is Verdict.VIOLATED
    assert [(v.anomaly, v.count) for v in judgement.violations] == [("lost", 1)]
    assert [(c.anomaly, c.count) for c in judgement.counted] == [("duplicated", 1)]
    assert judgement.inconclusive == ()


class Breaks(Lost):
    """A finder whose author was careless."""

    anomaly: ClassVar[str] = "broken"

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        raise RuntimeError("boom")


class HasOtherColumns(Lost):
    anomaly: ClassVar[str] = "other"

    def of_messages(self, tables: MessageTables) -> pl.DataFrame:
        return super().of_messages(tables).drop("sender")


def test_a_finder_that_raises_is_named_and_hides_no_other(violated: RunDir, spark: SparkSession) -> None:
    finders: list[Finder] = [Breaks(), HasOtherColumns(), Lost(), Duplicated()]
    result = reconcile(violated, spark, finders)
    assert set(result["crashed"]) == {"broken", "other"}
    assert "boom" in result["crashed"]["broken"]
    assert (result["counts"]["lost"], result["counts"]["duplicated"]) == (1, 1)
    assert "broken" not in result["counts"]
    verdict = judge(result, Mode.AT_MOST_ONCE, Settings(windows=1))
    assert any("broken" in doubt for doubt in verdict.inconclusive)


def test_a_run_in_which_nothing_happened_is_inconclusive(tmp_path: Path, spark: SparkSession) -> None:
    run = LiteralRun(tmp_path)
    run.session(1)
    folder = run.finish()
    result = reconcile(folder, spark, [Lost()])
    assert result["counts"]["attempted"] == 0
    assert judge(result, Mode.AT_LEAST_ONCE, Settings()).verdict is Verdict.INCONCLUSIVE
