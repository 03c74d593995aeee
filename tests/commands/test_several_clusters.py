"""Commands with several clusters: one that cannot be had, or on which nothing can run, does not end those that allow it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import campaign
from harness.cluster_options import Choice
from harness.commands import _run_and_report
from harness.commands._progress import Progress
from harness.contracts import Cluster, ClusterDescription, Mode, Verdict
from harness.errors import OnceproofError, SetupError
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario
from harness.trends.store import FOLDER, read_rows
from harness.verdict import Judgement
from reports.course import Course
from reports.model import RunReport
from reports.summary import Account
from suites.scenarios import matrix
from tests.fake_arena import FakeCluster, make_arena
from tests.reports.sample import sample_runs

JOBS = [
    (Choice(kafka=version), [Scenario(name=f"on-{version}", mode=Mode.AT_LEAST_ONCE)])
    for version in ("4.0.0", "4.1.0", "4.2.0")
]
SEVERED = next(s for s in matrix.FULL if s.name == "at_least_once-sever-leader")


class Described(FakeCluster):
    kind = "memory"

    def describe(self) -> ClusterDescription:
        return ClusterDescription(self.kind, {"ready": 0.1}, "4.3.1")


class NeverReady(Described):
    def start(self) -> None:
        raise SetupError("no fuse on this machine")


def cluster_of(kind: type[Described], nodes: list[Any] | None = None) -> Described:
    fake = make_arena().cluster
    return kind(fake.brokers if nodes is None else nodes, fake.replicas)


@pytest.fixture
def carry_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run jobs with prepared runs; `built` gives a cluster, or raises, for a release of Kafka."""
    held = iter([run for run in sample_runs(tmp_path / "samples") if "once-" in run.run_id])
    monkeypatch.setattr("harness.reconcile.spark.session.spark", lambda: None)
    monkeypatch.setattr("harness.reconcile.spark.session.start_in_background", lambda: None)
    monkeypatch.setattr(campaign, "execute", lambda *_, **__: next(held))

    def assess(runs: Sequence[RunDir], *_: object) -> list[Any]:
        held = Judgement(Verdict.HELD, Verdict.HELD, Mode.AT_LEAST_ONCE)
        return [({"counts": {}, "coverage": {"windows": []}}, held) for _ in runs]

    monkeypatch.setattr(campaign, "assess_each", assess)

    def run(built: Callable[[str], Cluster], jobs: Sequence[Any] = JOBS, **proof: Any) -> int:
        monkeypatch.setattr(Choice, "build", lambda self, folder: built(self.kafka))
        parser = argparse.ArgumentParser()
        _run_and_report.add_arguments(parser)
        args = parser.parse_args(["--runs", str(tmp_path / "runs"), "--json"])
        args.command = "catalogue"
        args.runs.mkdir()
        whole = [(choice, scenarios, lambda s: str(s.name)) for choice, scenarios in jobs]
        return _run_and_report.Proof(args, Progress(3), **proof).carry_out(whole, "t", "./onceproof")

    return run


def without_fuse(error: OnceproofError | None) -> Callable[[str], Cluster]:
    def built(version: str) -> Cluster:
        if version == "4.1.0" and error is not None:
            raise error
        return cluster_of(NeverReady if version == "4.1.0" else Described)

    return built


@pytest.mark.parametrize("error", [SetupError("no fuse on this machine"), None], ids=["built", "started"])
def test_a_cluster_that_cannot_be_had_skips_its_scenarios(
    carry_out: Callable[..., int], error: OnceproofError | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(without_fuse(error), skips_impossible=True) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["skipped"] == [{"scenario": "on-4.1.0", "reason": "no fuse on this machine"}]
    assert (len(summary["runs"]), summary["planned"], summary["ended"]) == (2, 2, "complete")


def test_without_that_permission_it_ends_the_command(
    carry_out: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SetupError, match="no fuse"):
        carry_out(without_fuse(None))
    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["runs"]), summary["ended"]) == (1, "failed")


def test_a_cluster_on_which_nothing_can_run_does_not_end_the_command(
    carry_out: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    nodes: list[Any] = [type("Plain", (), {"name": f"broker-{number}"})() for number in (1, 2, 3)]

    def built(version: str) -> Cluster:
        found = cluster_of(Described, nodes if version == "4.1.0" else None)
        found.kind = "existing"
        return found

    jobs = [JOBS[0], (Choice(kafka="4.1.0"), [SEVERED]), JOBS[2]]
    assert carry_out(built, jobs) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [each["scenario"] for each in summary["skipped"]] == [SEVERED.name]
    assert len(summary["runs"]) == 2


def test_if_nothing_ran_at_all_the_first_reason_ends_the_command(carry_out: Callable[..., int]) -> None:
    with pytest.raises(SetupError, match="no fuse on this machine"):
        carry_out(lambda _: cluster_of(NeverReady), skips_impossible=True)


def test_a_command_may_give_its_own_account(
    carry_out: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def account(runs: Sequence[RunReport], *rest: Any) -> Account:
        course = next(each for each in rest if isinstance(each, Course))
        return Account({"runs": len(runs), "timed": sorted(course.seconds)}, "a table", 3)

    assert carry_out(lambda _: cluster_of(Described), account=account) == 3
    assert json.loads(capsys.readouterr().out) == {
        "runs": 3,
        "timed": ["on-4.0.0", "on-4.1.0", "on-4.2.0"],
    }


def test_the_runs_of_all_clusters_are_one_session_of_the_trends(
    carry_out: Callable[..., int], tmp_path: Path
) -> None:
    assert carry_out(lambda _: cluster_of(Described)) == 0
    rows = read_rows(tmp_path / "runs" / FOLDER)
    assert [row.kind for row in rows] == ["catalogue"] * 3
    assert len({row.session for row in rows}) == 1


def test_a_store_that_cannot_be_written_is_one_line_and_changes_no_result(
    carry_out: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("harness.trends.recorder.FOLDER", "../file/trends")
    (tmp_path / "file").touch()
    assert carry_out(lambda _: cluster_of(Described)) == 0
    captured = capsys.readouterr()
    assert captured.err.count("not added") == 1
    assert len(json.loads(captured.out)["runs"]) == 3
