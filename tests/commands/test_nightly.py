"""Whole nights on mock brokers: the canary, findings, the journal after SIGKILL, --on-finish, and the exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.commands import _night_cluster
from harness.ledger.rundir import find_runs
from harness.nights.journal import FILE, NIGHTS, read
from harness.nights.night import Night
from harness.nights.plan import Plan
from harness.nights.shared_cluster import SharedCluster
from harness.scenario import Scenario
from harness.trends.row import Row
from harness.trends.store import FOLDER, read_rows
from suites.nights import planning
from tests.commands.mock_brokers import CANARY, NEARLY_SMALLEST, on_mock_brokers
from tests.short_run import HONEST

ROOT = Path(__file__).parents[2]
HONEST_ONES = tuple(replace(HONEST, name=f"honest-{number}", seed=number) for number in (1, 2, 3))


def with_plan(monkeypatch: pytest.MonkeyPatch, scenarios: Sequence[Scenario], minutes: float = 10.0) -> None:
    on_mock_brokers(monkeypatch)
    plan = Plan(7, minutes, tuple(scenarios), CANARY.name)
    monkeypatch.setattr(planning, "planned", lambda seed, minutes: plan)


def night(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["nightly", "--seed", "7", "--json", "--runs", str(tmp_path / "runs"), *words])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.spark
def test_a_night_that_holds_finds_its_canary_and_ends_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(monkeypatch, [HONEST_ONES[0], CANARY, HONEST_ONES[1]])
    sink = tmp_path / "sink.json"
    code, data = night(tmp_path, capsys, "--on-finish", f"cat > '{sink}'; exit 3")
    assert code == 0, data
    assert data["canary"] == {"scenario": "canary", "found": True}
    assert [run["scenario"] for run in data["runs"]] == ["honest-1", "canary", "honest-2"]
    assert (data["findings"], data["inconclusive"], data["leaks"]) == ([], [], [])
    assert data["coverage"]["night"]["bit"] == data["coverage"]["night"]["exercised"] > 0
    assert json.loads(sink.read_text()) == data
    assert Path(data["report"]).exists()
    assert read(Path(data["journal"])).ended


@pytest.mark.spark
def test_a_night_without_its_canary_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(monkeypatch, [replace(CANARY, client="confluent"), HONEST_ONES[0]])
    code, data = night(tmp_path, capsys)
    assert code == 1
    assert data["canary"]["found"] is False
    assert data["findings"] == []


@pytest.mark.spark
def test_a_violation_is_a_finding_and_is_replayed_and_minimised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(monkeypatch, [CANARY, NEARLY_SMALLEST])
    code, data = night(tmp_path, capsys)
    assert code == 1
    assert data["canary"]["found"]
    (finding,) = data["findings"]
    assert finding["scenario"] == "liar"
    assert finding["anomalies"]["lost"] >= 1
    assert (Path(finding["run_dir"]) / "ledger").is_dir(), "the evidence stays whole"
    assert (finding["replayed"]["shown"], finding["replayed"]["conclusive"]) == (2, 2)
    assert finding["minimised"]["shows"]
    assert finding["minimised"]["taken"] == ["producers: linger_ms=default"]
    assert "client='lying'" in finding["minimised"]["test"]
    drawn: list[Row] = []
    repeats: list[Row] = []
    for row in read_rows(tmp_path / "runs" / FOLDER):
        assert row.session == Path(data["journal"]).parent.name
        (drawn if row.kind == "nightly" else repeats).append(row)
    assert [(row.scenario, row.canary, list(row.findings)) for row in drawn] == [
        ("canary", True, []),
        ("liar", False, ["lost"]),
    ]
    assert [row.kind for row in repeats][:3] == ["replay", "replay", "minimise"]
    assert len(repeats) == 2 + len(list((tmp_path / "runs" / "liar-smaller").iterdir()))


@pytest.mark.spark
def test_a_stuck_run_is_ended_and_its_evidence_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stuck = replace(HONEST, name="stuck", produce_s=120.0)
    with_plan(monkeypatch, [stuck, CANARY])
    made = _night_cluster.shared_cluster

    def with_limit(*args: Any, **more: Any) -> SharedCluster:
        cluster = made(*args, **more)
        cluster.limit_of = lambda scenario: 15.0 if scenario.name == "stuck" else 500.0
        return cluster

    monkeypatch.setattr(_night_cluster, "shared_cluster", with_limit)
    before = signal.getsignal(signal.SIGTERM)
    try:
        code, data = night(tmp_path, capsys)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert code == 3, data
    assert data["canary"]["found"]
    assert data["inconclusive"] == ["stuck"]
    (trouble,) = data["troubles"]
    assert "did not end within 15 s" in trouble["text"]
    (run,) = find_runs([tmp_path / "runs" / "stuck"])
    assert run.read_manifest()["complete"] is False
    assert list(run.ledger.iterdir())
    assert data["clusters"] == 2, "the cluster was replaced"


_IN_ANOTHER_PROCESS = """
import sys
from tests.commands.test_nightly import with_plan, HONEST_ONES, CANARY
import pytest
from harness.cli import main
with_plan(pytest.MonkeyPatch(), [HONEST_ONES[0], CANARY, *HONEST_ONES[1:]])
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.spark
def test_a_killed_night_is_resumed_without_losing_or_repeating_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    words = [sys.executable, "-c", _IN_ANOTHER_PROCESS, "nightly", "--seed", "7", "--runs", str(runs)]
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(words, cwd=ROOT, env=dict(os.environ), stderr=err)
        try:
            until = time.monotonic() + 240
            while _executed(runs) < 2 and time.monotonic() < until and process.poll() is None:
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
    before = _executed(runs)
    assert before >= 2, (tmp_path / "err").read_text()
    on_mock_brokers(monkeypatch)
    code = main(["nightly", "--resume", "--json", "--runs", str(runs)])
    data = json.loads(capsys.readouterr().out)
    assert code == 0, data
    names = [run["scenario"] for run in data["runs"]]
    assert sorted(names) == ["canary", "honest-1", "honest-2", "honest-3"]
    assert {run["verdict"] for run in data["runs"] if run["scenario"] != "canary"} == {"HELD"}
    whole = [run for run in find_runs([runs]) if run.read_manifest()["complete"]]
    assert len(whole) == 4, "nothing ran twice"
    assert len(data["cut"]) <= 1
    rows = read_rows(runs / FOLDER)
    assert sorted(row.scenario for row in rows) == sorted(names), "each judged run is in the trends, once"
    assert len({row.session for row in rows}) == 1


def _executed(runs: Path) -> int:
    files = list((runs / NIGHTS).glob(f"*/{FILE}"))
    return sum(
        line.startswith('{"event": "executed"') for file in files for line in file.read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--minutes", "0"], "--minutes 0"),
        (["--resume", "--seed", "3"], "--resume continues"),
        (["--resume"], "no unfinished night"),
    ],
)
def test_wrong_use_is_one_line(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nightly", *words, "--runs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1


def test_an_error_that_ends_a_night_is_named_also_beside_a_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Night) -> None:
        self.journal.write("executed", scenario=CANARY.name, run_dir="", seconds=1.0)
        raise RuntimeError("page 7 is missing")

    with_plan(monkeypatch, [CANARY])
    monkeypatch.setattr(Night, "go", broken)
    code = main(["nightly", "--seed", "7", "--json", "--runs", str(tmp_path / "runs")])
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert (code, data["ended"]) == (1, "failed")
    assert "RuntimeError: page 7 is missing" in data["error"]
    assert "the night ended early" in printed.err


def test_the_list_does_not_tell_which_scenario_is_unsafe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nightly", "--list", "--seed", "11", "--minutes", "2"]) == 0
    output = capsys.readouterr().out
    assert (
        output.splitlines()[-1]
        == f"seed 11, 2 minutes: {len(output.splitlines()) - 3} scenarios, one of them unsafe"
    )
    assert not any(word in output for word in ("control-", *(each.hazard for each in planning.canaries())))
