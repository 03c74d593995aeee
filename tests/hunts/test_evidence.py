"""The evidence folder: what a maintainer gets, of a finding and of a search without one."""

from __future__ import annotations

import json
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.campaign import Result
from harness.cli import main
from harness.contracts import Mode, Verdict
from harness.hunts.evidence import EXPLAINED, LINES, MOST_FINDINGS, EvidenceFolder, marked_lines
from harness.hunts.hunt import Hunt, HuntedRun, HuntResult
from harness.ledger.results import read_reconciled
from harness.scenario import Scenario
from harness.verdict import AnomalyCount, Judgement
from tests.explain.plain_run import plain, reconciled

SCENARIO = Scenario(name="hunt-a", mode=Mode.AT_LEAST_ONCE)
HUNT = Hunt(
    title="Is it lost?", suspicion="It may be lost.", sources=("KAFKA-1",), scenario=SCENARIO.with_seed, shows=("lost",),
    runs=4, not_tried="other things.", log_lines="incarnation|Truncating",
)  # fmt: skip


def finished(root: Path, seed: int, *, lost: int = 0) -> Result:
    """A run with logs of two nodes, reconciled and judged."""
    run = reconciled(plain(root / str(seed)).finish(), verdict="VIOLATED" if lost else "HELD")
    logs = run.logs / "cluster"
    logs.mkdir(parents=True)
    (logs / "broker-1.log").write_text(
        "[2026-11-19 03:00:02,000] INFO Truncating t-0 to 0\n  at a line of a trace, incarnation\nother\n"
    )
    (logs / "controller-1.log").write_text("[2026-11-19 03:00:01,500] INFO a new incarnation of broker 1\n")
    judgement = Judgement(
        Verdict.VIOLATED if lost else Verdict.HELD, Verdict.HELD, Mode.AT_LEAST_ONCE,
        violations=(AnomalyCount("lost", lost, "acked is acked"),) if lost else (),
    )  # fmt: skip
    return Result(run, SCENARIO.with_seed(seed), read_reconciled(run), judgement)


def hunted(tmp_path: Path, *lost: int) -> tuple[HuntResult, Path]:
    """The result of runs that lost so many records, and its evidence folder."""
    folder, result = EvidenceFolder(tmp_path / "evidence" / "a", HUNT), HuntResult("a", HUNT)
    for seed, count in enumerate(lost):
        one = finished(tmp_path / "runs", seed, lost=count)
        run = HuntedRun.of(one, 10.0)
        folder.keep(run, one)
        result.runs.append(run)
    return result, folder.write(result, {"kafka": "4.3.1"}, "./onceproof hunt a --runs-each 4 --seed 0")


def test_a_finding_has_its_run_its_explanation_and_the_lines_of_the_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, folder = hunted(tmp_path, 0, 3)
    assert (result.rate.found, result.rate.runs, result.anomalies) == (1, 2, {"lost": 1})
    finding = folder / "finding-1"
    assert {path.name for path in finding.iterdir()} == {
        "manifest.json", "reconciled.json", "verdict.json", "findings.parquet", EXPLAINED, LINES,
        "ledger.tar.gz", "logs.tar.gz",
    }  # fmt: skip
    with tarfile.open(finding / "logs.tar.gz") as logs:
        assert "cluster/broker-1.log" in logs.getnames()
    assert "producer-1.0-3 is gone." in (finding / EXPLAINED).read_text()
    # The copy is a run folder that other commands read, its packed journals included.
    assert main(["explain", str(finding), "--message", "producer-1.0-3"]) == 0
    assert "lost: producer-1.0-3 is gone." in capsys.readouterr().out
    text = (folder / "README.md").read_text()
    for part in (
        HUNT.title,
        HUNT.suspicion,
        "KAFKA-1",
        str(result.rate),
        "kafka 4.3.1",
        "--runs-each 4 --seed 0",
    ):
        assert part in text
    data = json.loads((folder / "result.json").read_text())
    assert data["rate"]["found"] == 1
    assert [run["verdict"] for run in data["runs"]] == ["HELD", "VIOLATED"]
    assert data["versions"] == {"kafka": "4.3.1"}


def test_a_search_in_vain_says_how_hard_it_looked(tmp_path: Path) -> None:
    result, folder = hunted(tmp_path, 0, 0)
    text = (folder / "README.md").read_text()
    assert f"at most {result.rate.interval[1]:.1%}" in text
    assert "Not tried: other things." in text
    assert "| messages attempted, acked | 40, 40 |" in text
    assert {path.name for path in folder.iterdir()} == {"README.md", "result.json", LINES}
    assert "a new incarnation of broker 1" in (folder / LINES).read_text()


def test_only_the_first_findings_are_copied(tmp_path: Path) -> None:
    result, folder = hunted(tmp_path, *[1] * (MOST_FINDINGS + 1))
    assert result.rate.found == MOST_FINDINGS + 1
    assert len(list(folder.glob("finding-*"))) == MOST_FINDINGS


def test_two_searches_in_one_second_have_two_folders(tmp_path: Path) -> None:
    first = hunted(tmp_path / "1", 0)[1]
    (tmp_path / "2").mkdir()
    second = EvidenceFolder(first.parent, HUNT)
    assert second.path != first


def test_lines_of_several_logs_are_in_order_of_time_and_name_their_writer(tmp_path: Path) -> None:
    logs = finished(tmp_path, 1).run.logs
    between = time.mktime(time.strptime("2026-11-19 03:00:01", "%Y-%m-%d %H:%M:%S"))
    (logs / "producer-1.0.out").write_text(
        f"%7|{between:.0f}.750|DRAIN|rdkafka#producer-1| Truncating nothing\n"
    )
    got = list(marked_lines(logs, "incarnation|Truncating"))
    assert [line.split()[0] for line in got] == ["controller-1", "producer-1.0", "broker-1", "broker-1"]
    assert got[1].split("]")[0].endswith("[2026-11-19 03:00:01,750")
    assert got[3].endswith("at a line of a trace, incarnation")


def test_a_reason_for_inconclusive_can_be_a_finding(tmp_path: Path) -> None:
    one = finished(tmp_path, 1)
    reasons = ("no progress after the last window: nothing was acked after healing", "a fault did not bite")
    judged = replace(one.judgement, verdict=Verdict.INCONCLUSIVE, inconclusive=reasons)
    one = replace(one, judgement=judged)
    stuck = HuntedRun.of(one, 1.0, "no progress after")
    assert (stuck.is_finding, stuck.counts, stuck.found) == (True, True, {"stuck": 1})
    assert not HuntedRun.of(one, 1.0).counts


def test_what_a_broken_ledger_shows_is_no_finding(tmp_path: Path) -> None:
    one = finished(tmp_path, 1, lost=3)
    judged = replace(one.judgement, verdict=Verdict.INCONCLUSIVE)
    assert not HuntedRun.of(replace(one, judgement=judged), 1.0).is_finding


def test_inconclusive_and_broken_runs_are_not_counted() -> None:
    result = HuntResult("a", HUNT)
    for number, verdict in enumerate(["HELD", "INCONCLUSIVE", "", "VIOLATED"]):
        result.runs.append(
            HuntedRun(
                seed=number,
                scenario="hunt-a",
                path=None,
                verdict=verdict,
                acked=10,
                faults=1,
                found={"lost": 1} if verdict == "VIOLATED" else {},
            )
        )
    assert (result.rate.found, result.rate.runs) == (1, 2)
    assert (result.total("acked"), result.total("faults")) == (20, 2)
    assert result.as_data()["unproven"] == 2
