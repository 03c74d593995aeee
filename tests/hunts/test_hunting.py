"""Hunts on mock brokers: budgets, results and trouble, with real clients and real Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faults.kill import Kill
from harness.cluster_options import Choice
from harness.clusters.memory import MemoryCluster
from harness.errors import UsageError
from harness.hunts.hunt import Hunt, HuntResult
from harness.hunts.hunting import Budget, HuntingGround, hunt_all
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from tests.short_run import HONEST as SHORT_RUN

HONEST = replace(SHORT_RUN, name="hunt-a")


def hunt(scenario: Scenario, runs: int = 2) -> Hunt:
    return Hunt(title="Is it lost?", suspicion="It may be.", sources=("KAFKA-1",), scenario=scenario.with_seed,
                shows=("lost",), runs=runs, not_tried="the rest.", log_lines="node")  # fmt: skip


@pytest.fixture
def ground(tmp_path: Path) -> HuntingGround:
    said: list[str] = []
    return HuntingGround(
        choice=Choice(), runs=tmp_path / "runs", evidence=tmp_path / "evidence", seed=5, keep="evidence", versions={},
        say=said.append, build=lambda choice, folder: MemoryCluster(folder),
    )  # fmt: skip


@pytest.mark.spark
def test_a_hunt_uses_its_budget_and_packs_what_it_does_not_need(ground: HuntingGround) -> None:
    results: list[HuntResult] = []
    hunt_all({"a": hunt(HONEST)}, ground, Budget(), results)
    (result,) = results
    assert [run.seed for run in result.runs] == [5, 6]
    assert (result.rate.found, result.rate.runs) == (0, 2)
    assert result.total("acked") > 0
    assert result.evidence is not None
    assert "./onceproof hunt a --runs-each 2 --seed 5" in (result.evidence / "README.md").read_text()
    assert all(run.path is not None and not (run.path / "ledger").exists() for run in result.runs)


@pytest.mark.spark
def test_a_lie_is_a_finding(ground: HuntingGround, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_LIE", "lose")
    results: list[HuntResult] = []
    hunt_all({"a": hunt(replace(HONEST, client="lying"))}, ground, Budget(runs_each=1), results)
    (result,) = results
    assert result.anomalies["lost"] == 1
    assert result.evidence is not None
    assert (result.evidence / "finding-1" / "ledger.tar.gz").exists()


def test_a_hunt_that_the_cluster_cannot_do_is_not_run_and_the_next_one_is_tried(
    ground: HuntingGround,
) -> None:
    impossible = hunt(replace(HONEST, schedule=once(Kill(), on=leader_of(0))))
    results: list[HuntResult] = []
    hunt_all({"a": impossible, "b": impossible}, ground, Budget(), results)
    assert [result.runs for result in results] == [[], []]
    assert all("kill on leader" in result.not_run for result in results)
    assert not ground.evidence.exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"runs_each": 1, "minutes": 1.0}, "--runs-each or --minutes"),
        ({"runs_each": 0}, "--runs-each 0"),
        ({"minutes": 0.0}, "--minutes 0"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(words: dict[str, float], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        Budget(**words)  # type: ignore[arg-type]
