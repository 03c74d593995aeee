"""Whole runs without Kafka: real workers and clients on mock brokers, real Spark, every verdict.

An honest final reader gives HELD. A lying one gives VIOLATED, with the anomaly of the lie: a harness that misses it is
blind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.assessment import assess
from harness.campaign import Campaign
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import TopicSettings, Verdict
from harness.execute import BrokenRun
from harness.expectation import Standing
from harness.ledger.rundir import find_runs, read_json
from harness.reconcile import run_locations
from harness.reconcile.spark.session import spark
from harness.scenario import (
    ChurnSettings,
    ConsumerSettings,
    PipelineSettings,
    ProducerSettings,
)
from harness.waiting import wait_until
from harness.workers.worker import Worker
from reports.model import read_runs
from tests.short_run import HONEST

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    folder = tmp_path_factory.mktemp("whole")
    with MemoryCluster(folder / "cluster") as cluster, Campaign(cluster, folder / "runs") as campaign:
        yield campaign


def test_an_honest_run_is_held_and_can_be_reconciled_again(campaign: Campaign) -> None:
    result = campaign.run(HONEST).result()
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("acked") == result.count("attempted") > 0
    assert result.count("in_log") == result.count("delivered") == result.count("acked")
    # Again from disk: the same counts and the same verdict.
    stored = read_json(result.run.verdict, "")
    reconciled, judgement = assess(result.run, spark())
    assert judgement.to_json() == stored
    assert reconciled["counts"] == result.reconciled["counts"]
    assert reconciled["compared"] == result.reconciled["compared"]


def test_a_packed_run_is_reconciled_as_before_here_and_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST R6: an expected run is packed as soon as it is judged, an unexpected one keeps all files."""
    with (
        MemoryCluster(tmp_path / "cluster") as cluster,
        Campaign(cluster, tmp_path / "runs", keep="evidence", pack_at_once=True) as campaign,
    ):
        result = campaign.run(HONEST).result()
        monkeypatch.setenv("ONCEPROOF_LIE", "lose")
        liar = campaign.run(replace(HONEST, name="liar", client="lying")).result()
    assert result.verdict is Verdict.HELD, result.explain()
    assert not result.run.ledger.exists()
    assert not result.run.tables.exists()
    assert liar.verdict is not Verdict.HELD
    assert liar.run.ledger.is_dir()
    assert liar.run.logs.is_dir()
    with run_locations.opened([str(result.run.path), result.run.path.as_uri()], spark()) as runs:
        for run in runs:
            reconciled, judgement = assess(run, spark())
            assert judgement.to_json() == result.judgement.to_json()
            assert reconciled["counts"] == result.reconciled["counts"]


@pytest.mark.parametrize("error", [ZeroDivisionError("ours"), KeyboardInterrupt("SIGTERM")])
def test_an_aborted_run_is_inconclusive_with_its_reason(  # TRUST R7
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(*_: object) -> int:
        raise error

    monkeypatch.setattr("harness.running.steps.partitions_now", fails)  # called before the final reading
    scenario = replace(HONEST, name=f"broken-{type(error).__name__}")
    why = "ZeroDivisionError: ours"
    if isinstance(error, Exception):
        future = campaign.run(scenario)
        with pytest.raises(BrokenRun, match=why):
            future.result()
        run = campaign.runs[-1]
        assert "in fails" in (run.logs / "harness-error.txt").read_text()
    else:
        with pytest.raises(KeyboardInterrupt):
            campaign.run(scenario)
        run, why = find_runs([campaign.runs[0].path.parents[1] / scenario.name])[0], "the run was interrupted"
    assert run.read_manifest()["complete"] is False
    _reconciled, judgement = assess(run, spark())
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert any(why in doubt for doubt in judgement.inconclusive), judgement.inconclusive


def test_observers_do_not_affect_the_run(campaign: Campaign) -> None:
    result = campaign.run(replace(HONEST, name="observed", observed=True)).result()
    assert result.verdict is Verdict.HELD, result.explain()
    acked = result.count("acked")
    assert result.reconciled["coverage"]["observed"] == {
        "observer-committed": acked,
        "observer-uncommitted": acked,
    }
    assert result.reconciled["coverage"]["readers"] == 1
    assert result.count("delivered") == acked > 0


def test_a_pipeline_sends_its_effects(campaign: Campaign) -> None:
    """Mock brokers have no real transactions, so this pipeline commits after its output was acked."""
    scenario = replace(
        HONEST,
        name="pipeline",
        workload="transactional_copy",
        producers=ProducerSettings(records_per_s=300),
        pipeline=PipelineSettings(members=1, poison_share=0.1, output=TopicSettings(partitions=PARTITIONS)),
    )
    result = campaign.run(scenario).result()
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["compared"]["missing_effect"] > 0
    assert result.reconciled["compared"]["double_effect"] > 0


def test_a_missing_effect_of_a_pipeline_is_found(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_LIE", "lose_effect")
    scenario = replace(
        HONEST,
        name="pipeline-lies",
        client="lying",
        workload="transactional_copy",
        producers=ProducerSettings(records_per_s=300),
        pipeline=PipelineSettings(members=1, output=TopicSettings(partitions=PARTITIONS)),
    )
    result = campaign.run(scenario).result()
    assert result.verdict is Verdict.VIOLATED, result.explain()
    assert result.violations == {"lost", "missing_effect"}, result.explain()


@pytest.mark.parametrize("auto_commit", [False, True])
def test_a_group_that_changes_loses_nothing(campaign: Campaign, auto_commit: bool) -> None:
    scenario = replace(
        HONEST,
        name=f"churn-{auto_commit}",
        workload="group_churn",
        producers=ProducerSettings(records_per_s=300),
        consumers=ConsumerSettings(members=1, auto_commit=auto_commit),
        churn=ChurnSettings(for_s=1.5, stay_s=0.4, away_s=0.1),
        produce_s=2.0,
    )
    result = campaign.run(scenario).result()
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.reconciled["coverage"]["rebalances"] > 1, "it never left"


def test_every_lie_is_found(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_LIE", "lose,repeat,swap,corrupt")
    result = campaign.run(replace(HONEST, name="lies", client="lying")).result()
    assert result.verdict is Verdict.VIOLATED, result.explain()
    assert result.violations >= {"lost", "duplicated", "reordered", "corrupted"}, result.explain()
    for anomaly in ("lost", "duplicated", "reordered", "corrupted"):
        evidence = [f for f in result.reconciled["findings"] if f["anomaly"] == anomaly]
        assert evidence, f"no evidence of {anomaly}"
        assert all(f["messages"] and f["text"] for f in evidence)


def test_a_final_reader_that_times_out_is_never_a_violation(campaign: Campaign) -> None:
    """T1: the log is complete, and nothing of it was read in time."""
    timings = replace(HONEST.timings, final_read_limit_s=0.001)
    result = campaign.run(replace(HONEST, name="no-time", timings=timings)).result()
    assert result.verdict is Verdict.INCONCLUSIVE, result.explain()
    assert result.violations == set(), result.explain()
    not_asked = result.reconciled["coverage"]["not_asked"]
    assert {entry["partition"] for entry in not_asked} == set(range(PARTITIONS))
    assert any(
        "was not asked of" in text and "stopped at 0 of" in text for text in result.judgement.inconclusive
    )
    assert result.reconciled["compared"]["lost"] == 0


def test_a_killed_final_reader_is_never_a_violation(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T1: it has written some rows when it is killed by SIGKILL, and the log itself is complete."""
    monkeypatch.setenv("ONCEPROOF_LIE", "die")
    result = campaign.run(replace(HONEST, name="killed-reader", client="lying")).result()
    assert 0 < result.count("in_log") < result.count("acked"), "it was not killed half way"
    assert result.verdict is Verdict.INCONCLUSIVE, result.explain()
    assert result.violations == set(), result.explain()
    assert result.count("lost") == 0
    assert any("lost was not asked of" in text for text in result.judgement.inconclusive), result.explain()


class _KilledFromOutside:
    """Kills workers of a run by SIGKILL once all of them have worked, as the kernel does when memory is short."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.killed: list[str] = []
        self._all_ready = threading.Barrier(len(names))  # the run ends as soon as one worker is missing
        start = Worker.start

        def start_and_kill(worker: Worker) -> None:
            start(worker)
            if worker.name in names:
                threading.Thread(target=self._kill, args=(worker,), daemon=True).start()

        monkeypatch.setattr(Worker, "start", start_and_kill)

    def _kill(self, worker: Worker) -> None:
        assert worker._process is not None
        if worker.role != "final_reader":  # which has no counters
            wait_until(
                lambda: worker.counters().delivered + worker.counters().acked > 100, 60.0, "it does nothing"
            )
        self._all_ready.wait(60.0)
        self.killed.append(worker.name)
        os.kill(worker._process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "names",
    [
        ("consumer-1",),
        ("producer-1",),
        ("observer-committed", "observer-uncommitted", "consumer-1"),
    ],
    ids=lambda names: names[0],
)
def test_a_worker_killed_from_outside_makes_the_run_inconclusive(
    names: tuple[str, ...], campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST T10: such a run used to be HELD."""
    outside = _KilledFromOutside(monkeypatch, *names)
    timings = replace(HONEST.timings, drain_limit_s=5, warm_up_limit_s=30, final_read_limit_s=30)
    scenario = replace(HONEST, name=f"outside-{names[0]}", observed=True, timings=timings, produce_s=1.0)
    result = campaign.run(scenario).result()
    assert sorted(outside.killed) == sorted(names)
    assert result.verdict is Verdict.INCONCLUSIVE, result.explain()
    for name in names:
        words = f"worker {name} was ended by SIGKILL, which onceproof did not send"
        assert any(words in text for text in result.judgement.inconclusive), result.explain()
        if name.startswith("observer"):
            assert any(
                text.startswith(f"{name} did not read to the end") for text in result.judgement.inconclusive
            ), result.explain()


def test_a_final_reader_killed_from_outside_is_named(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST T10."""
    outside = _KilledFromOutside(monkeypatch, "final-reader")
    result = campaign.run(replace(HONEST, name="outside-final-reader")).result()
    assert outside.killed == ["final-reader"]
    assert result.verdict is not Verdict.HELD, result.explain()
    words = "worker final-reader was ended by SIGKILL, which onceproof did not send"
    assert any(words in text for text in result.judgement.inconclusive), result.explain()


def test_a_worker_that_fails_makes_the_run_inconclusive(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_LIE", "no such lie")
    timings = replace(HONEST.timings, warm_up_limit_s=5, drain_limit_s=1, final_read_limit_s=5)
    result = campaign.run(replace(HONEST, name="failing", client="lying", timings=timings)).result()
    assert result.verdict is Verdict.INCONCLUSIVE, result.explain()
    assert any("no such lie" in text for text in result.judgement.inconclusive), result.explain()


def test_a_control_is_satisfied_only_by_its_required_anomaly(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scenario, manifest, verdict.json and report follow one rule (E13)."""
    monkeypatch.setenv("ONCEPROOF_LIE", "lose")
    lost = replace(
        HONEST,
        name="loses",
        client="lying",
        expected=Verdict.VIOLATED,
        requires={"lost": 1},
        # A record that the final reader hides is still delivered, so another anomaly is found too.
        tolerates=("phantom", "offset_conflict"),
        control=True,
    )
    corrupted = replace(lost, name="corrupts", requires={"corrupted": 1}, tolerates=(*lost.tolerates, "lost"))
    seen, missed = (campaign.run(each).result() for each in (lost, corrupted))
    assert seen.as_expected, seen.explain()
    assert seen.judgement.found["lost"] >= 1
    assert missed.verdict is Verdict.VIOLATED, missed.explain()
    assert not missed.as_expected
    assert "required: corrupted >= 1; found: corrupted 0" in missed.explain()
    shown = {run.scenario: run for run in read_runs([seen.run, missed.run])}
    assert shown["loses"].standing is Standing.AS_PROMISED
    assert shown["corrupts"].standing is Standing.MISSED
