"""A `prove` that is interrupted or hits an internal error still reports the completed runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from harness import campaign
from harness.cluster_options import Choice
from harness.commands import _run_and_report
from harness.commands._progress import Progress
from harness.contracts import ClusterDescription, Mode
from harness.errors import ClusterError, LedgerError
from harness.execute import BrokenRun
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario
from suites.scenarios import matrix
from tests.fake_arena import FakeCluster, make_arena
from tests.reports.sample import sample_runs

SCENARIOS = [Scenario(name=f"s{number}", mode=Mode.AT_LEAST_ONCE) for number in range(5)]


class Cluster(FakeCluster):
    kind = "memory"

    def describe(self) -> ClusterDescription:
        return ClusterDescription(self.kind, {"ready": 0.1}, "4.3.1")


@pytest.fixture
def prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run scenarios with prepared runs; `happens` is called before each and may raise."""
    samples = sample_runs(tmp_path / "samples", broken=["exactly_once-kill-leader"])
    held = [run for run in samples if "once-" in run.run_id and "exactly" not in run.run_id]
    broken = [run for run in samples if "exactly_once-kill" in run.run_id]
    fake = make_arena().cluster
    cluster = Cluster(fake.brokers, fake.replicas)
    monkeypatch.setattr(Choice, "build", lambda self, folder: cluster)
    monkeypatch.setattr("harness.reconcile.spark.session.spark", lambda: None)
    monkeypatch.setattr("harness.reconcile.spark.session.start_in_background", lambda: None)

    def run(
        happens: Callable[[int], None] = lambda number: None,
        reconciles: Callable[[RunDir], None] = lambda run: None,
        scenarios: Sequence[Scenario] = SCENARIOS,
        kind: str = "memory",
        violated: bool = False,
        words: Sequence[str] = ("--json",),
        archive: Any = None,
    ) -> int:
        made = iter([*broken, *held] if violated else held)
        number = iter(range(99))
        cluster.kind = kind

        def execute(scenario: Scenario, *_: Any, **__: Any) -> RunDir:
            folder = next(made)
            at = next(number)
            try:
                happens(at)
            except (ValueError, OSError) as error:
                raise BrokenRun(folder, error) from error
            return folder

        def assess(runs: Sequence[RunDir], _spark: object, catch: type[Exception]) -> list[Any]:
            answers: list[Any] = []
            for each in runs:
                try:
                    reconciles(each)
                    answers.append(({"counts": {}}, argparse.Namespace(as_expected=True, verdict="HELD")))
                except catch as error:
                    answers.append(error)
            return answers

        monkeypatch.setattr(campaign, "execute", execute)
        monkeypatch.setattr(campaign, "assess_each", assess)
        parser = argparse.ArgumentParser()
        _run_and_report.add_arguments(parser)
        args = parser.parse_args(["--runs", str(tmp_path / "runs"), *words])
        args.command = "prove"
        proof = _run_and_report.Proof(args, Progress(len(scenarios)), _archive=archive)
        args.runs.mkdir()
        return proof.carry_out([(Choice(), scenarios, lambda s: s.name)], "prove", "./onceproof prove")

    return run


def raising(at: int, error: BaseException) -> Callable[[int], None]:
    def happens(number: int) -> None:
        if number == at:
            raise error

    return happens


def test_an_interruption_reports_the_completed_runs(  # TRUST R7
    prove: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove(raising(3, KeyboardInterrupt("SIGTERM")), words=["--json", f"--junit={tmp_path}/junit.xml"])
    summary = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in summary["runs"]] == ["HELD"] * 3
    assert (summary["ended"], summary["planned"]) == ("interrupted", 5)
    report = json.loads((tmp_path / "runs/report.json").read_text())
    assert (report["ended"], len(report["runs"])) == ("interrupted", 3)
    assert "interrupted after 3 of 5 runs; 3 in the report" in (tmp_path / "runs/report.html").read_text()
    assert '<error type="interrupted"' in (tmp_path / "junit.xml").read_text()


class Archive:
    """Spark's class archive in the making; records the output at the time it is waited for."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys, self.calls, self.printed = capsys, list[str](), ""

    def finish(self) -> None:
        self.calls.append("finish")
        self.printed = self.capsys.readouterr().out

    def give_up(self) -> None:
        self.calls.append("give_up")


def test_spark_s_archive_is_waited_for_after_the_results(
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(capsys)
    assert prove(archive=archive) == 0
    assert archive.calls == ["finish"]
    assert json.loads(archive.printed)["ended"] == "complete"


def test_an_interrupted_prove_gives_spark_s_archive_up(
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(capsys)
    with pytest.raises(KeyboardInterrupt):
        prove(raising(3, KeyboardInterrupt("SIGTERM")), archive=archive)
    assert archive.calls == ["give_up"]


def test_an_interruption_before_the_first_run_is_done_leaves_the_last_report(
    prove: Callable[..., int], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove(raising(0, KeyboardInterrupt()))
    assert not (tmp_path / "runs/report.html").exists()


def test_an_interruption_while_results_are_awaited_reports_all_runs(  # TRUST R7
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: object, *_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_run_and_report.Proof, "_await", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prove()
    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["runs"]), summary["ended"]) == (5, "interrupted")


def test_an_internal_error_in_one_run_does_not_stop_the_others(  # TRUST R7
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ZeroDivisionError, match="ours"):
        prove(raising(1, cast(ValueError, _Ours("ours"))))
    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["runs"]), summary["ended"]) == (5, "complete")
    assert summary["errors"] == ["s1: an error of onceproof: _Ours: ours"]


class _Ours(ZeroDivisionError, ValueError):
    """An unexpected error."""


def test_a_violated_promise_outweighs_an_internal_error(  # TRUST R7
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert prove(raising(1, _Ours("ours")), violated=True) == 1
    assert json.loads(capsys.readouterr().out)["errors"] == ["s1: an error of onceproof: _Ours: ours"]


def test_an_interruption_outweighs_a_violated_promise(prove: Callable[..., int]) -> None:
    with pytest.raises(KeyboardInterrupt):
        prove(raising(2, KeyboardInterrupt()), violated=True)


def test_after_an_internal_error_a_cluster_that_does_not_answer_ends_the_campaign(
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "registered_brokers", lambda self: [])
    with pytest.raises(_Ours):
        prove(raising(1, _Ours("ours")))
    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["runs"]), summary["ended"]) == (2, "failed")


def test_a_run_that_cannot_be_reconciled_is_named_and_the_others_are_reported(  # TRUST R7
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def reconciles(run: RunDir) -> None:
        if "sever" in run.run_id:
            run.verdict.unlink(missing_ok=True)
            run.reconciled.unlink(missing_ok=True)
            raise LedgerError(f"{run.path}: damaged")

    assert prove(reconciles=reconciles) == 3
    summary = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in summary["runs"]].count("INCONCLUSIVE") == 2
    assert len(summary["runs"]) == 5
    assert all("not reconciled: " in text and "damaged" in text for text in summary["errors"])
    assert len(summary["errors"]) == 2


def test_a_failing_cluster_does_not_hide_the_completed_runs(  # TRUST R7
    prove: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ClusterError, match="no broker answers"):
        prove(raising(2, ClusterError("no broker answers")))
    summary = json.loads(capsys.readouterr().out)
    assert (len(summary["runs"]), summary["ended"], summary["errors"]) == (2, "failed", ["no broker answers"])


@pytest.mark.parametrize("words", [("--json",), ()], ids=["json", "table"])
def test_skipped_scenarios_are_reported_with_their_reasons(
    prove: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[str],
) -> None:
    severed = next(s for s in matrix.FULL if s.name == "at_least_once-sever-leader")
    cluster_nodes = [type("Plain", (), {"name": f"broker-{n}"})() for n in (1, 2, 3)]
    monkeypatch.setattr(Cluster, "nodes", lambda self: cluster_nodes)
    assert prove(scenarios=[*SCENARIOS, severed], kind="existing", words=words) == 0, (
        "skipped is not a failure"
    )
    output = capsys.readouterr().out
    if words:
        summary = json.loads(output)
        assert summary["planned"] == len(summary["runs"]) == 5
        assert [each["scenario"] for each in summary["skipped"]] == ["at_least_once-sever-leader"]
        assert summary["skipped"][0]["reason"].startswith("sever on leader needs a power that no node")
    else:
        assert "skipped at_least_once-sever-leader: sever on leader needs a power" in output
