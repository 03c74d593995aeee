"""The command `hunt` as users call it: the list, bad use, its text and its exit code."""

from __future__ import annotations

import json

import pytest

from harness.cli import main
from harness.hunts import listing
from harness.hunts.account import exit_code, text_of
from harness.hunts.hunt import HuntedRun, HuntResult

FOUND = listing.found()


def result(*verdicts: str, anomaly: str = "lost") -> HuntResult:
    made = HuntResult("wiped_leader", FOUND["wiped_leader"])
    for seed, verdict in enumerate(verdicts):
        found = {anomaly: 4} if verdict == "VIOLATED" else {}
        made.runs.append(HuntedRun(seed=seed, scenario="hunt-wiped_leader", path=None, verdict=verdict, found=found,
                                   attempted=100, acked=90, faults=2))  # fmt: skip
    return made


def test_the_list_has_every_hunt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hunt", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == sorted(FOUND)
    assert main(["hunt", "--list", "--json"]) == 0
    assert {row["id"] for row in json.loads(capsys.readouterr().out)["hunts"]} == set(FOUND)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["wiped_leadr"], "wiped_leader"),
        (["--runs-each", "2", "--minutes", "1"], "not both"),
        (["--runs-each", "0"], "--runs-each 0"),
        (["--cluster", "moon"], "--cluster moon"),
    ],
)
def test_bad_use_is_one_line(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hunt", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert named in output.err


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["HELD", "HELD"], 0),
        (["HELD", "INCONCLUSIVE"], 0),
        (["INCONCLUSIVE", ""], 3),
        ([], 3),
        (["INCONCLUSIVE", "VIOLATED"], 1),
    ],
)
def test_a_finding_is_1_and_a_hunt_without_proof_is_3(verdicts: list[str], code: int) -> None:
    assert exit_code([result("HELD"), result(*verdicts)]) == code


def test_the_text_says_how_hard_it_looked() -> None:
    text = text_of(result("HELD", "HELD", "INCONCLUSIVE"))
    assert "found nothing: 0 of 2 (0.0%; 95% interval 0.0% to 65.8%)" in text
    assert "200 messages, 180 acked, 4 faults took effect; 1 run(s) prove nothing" in text


def test_a_finding_that_was_not_suspected_is_named() -> None:
    assert "not what was suspected: phantom" in text_of(result("VIOLATED", anomaly="phantom"))
    assert "FOUND: 1 of 1" in text_of(result("VIOLATED"))
