"""The Spark job and the oracle agree, row by row: on literal cases, random histories, edges and a recorded run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from harness.campaign import Campaign
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Mode, TopicSettings
from harness.ledger.rundir import RunDir
from harness.reconcile.job import reconcile_many
from harness.reconcile.seal.seal import seal
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario, Timings
from tests.reconcile.cases import CASES
from tests.reconcile.edges import EDGES
from tests.reconcile.histories import History
from tests.reconcile.oracle import oracle, oracle_rows
from tests.reconcile.oracle_questions import ANOMALIES
from tests.reconcile.together import Finding, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def found_by_spark(run: RunDir) -> Counter[Finding]:
    rows = pq.read_table(run.findings).to_pylist()
    return Counter((row["anomaly"], tuple(row["messages"]), tuple(row["offsets"])) for row in rows)


def _folder(root: Path, name: str) -> RunDir:
    (only,) = (root / name).iterdir()
    return RunDir(only)


Opinions = Mapping[str, tuple[Counter[Finding], Counter[Finding]]]  # what Spark says, what the oracle says


def _opinions(names: Sequence[str], root: Path) -> Opinions:
    folders = {name: _folder(root, name) for name in names}
    second = oracle_rows(list(folders.values()))
    return {name: (found_by_spark(run), second[run]) for name, run in folders.items()}


@pytest.fixture(scope="module")
def opinions(outcomes: Mapping[str, Outcome], runs_root: Path) -> Opinions:
    """Compare everything that was reconciled in the one large job."""
    return _opinions(list(outcomes), runs_root)


@pytest.fixture(scope="module")
def on_edges(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Opinions:
    root = tmp_path_factory.mktemp("edges")
    names = list(EDGES)
    results = reconcile_many([replace(EDGES[name](root), name=name).finish() for name in names], spark)
    assert [result["crashed"] for result in results] == [{}] * len(results)
    return _opinions(names, root)


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_needs_no_spark_to_judge_a_case(name: str, tmp_path: Path) -> None:
    run, planted = CASES[name](tmp_path)
    folder = run.finish()
    seal(folder)
    assert oracle(folder) == planted


@pytest.mark.parametrize("name", CASES)
def test_both_agree_on_a_case(name: str, opinions: Opinions) -> None:
    by_spark, by_oracle = opinions[name]
    assert by_spark == by_oracle


def test_both_agree_on_random_histories(histories: Mapping[str, History], opinions: Opinions) -> None:
    names = [name for name in opinions if name.removeprefix("cut-") in histories]  # also those read in part
    assert len(names) > len(histories)
    differing = {name: opinions[name] for name in names if opinions[name][0] != opinions[name][1]}
    assert differing == {}


@pytest.mark.parametrize("name", EDGES)
def test_both_agree_at_an_edge(name: str, on_edges: Opinions) -> None:
    by_spark, by_oracle = on_edges[name]
    assert by_spark == by_oracle


def test_every_anomaly_of_ledgers_is_asked(outcomes: Mapping[str, Outcome]) -> None:
    looked_for = {name for outcome in outcomes.values() for name in outcome.result["compared"]}
    assert looked_for == ANOMALIES


@pytest.mark.spark
def test_both_agree_on_a_recorded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real workers and clients on mock brokers, read by a liar so that there is something to find."""
    monkeypatch.setenv("ONCEPROOF_LIE", "lose,repeat,swap,corrupt")
    scenario = Scenario(
        name="recorded",
        mode=Mode.IDEMPOTENT,
        client="lying",
        topic=TopicSettings(partitions=PARTITIONS),
        producers=ProducerSettings(records_per_s=1000),
        consumers=ConsumerSettings(members=2),
        timings=Timings(warm_up_s=0.1, cool_down_s=0.1, drain_limit_s=20),
        produce_s=0.3,
    )
    with MemoryCluster(tmp_path / "cluster") as cluster, Campaign(cluster, tmp_path / "runs") as campaign:
        result = campaign.run(scenario).result()
    by_spark = found_by_spark(result.run)
    assert by_spark == oracle_rows([result.run])[result.run]
    assert {"lost", "duplicated", "reordered", "corrupted"} <= {anomaly for anomaly, _, _ in by_spark}
