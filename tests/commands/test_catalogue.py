"""The catalogue as users call it: the list, names that do not exist, the clusters, and the account of the runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.cluster_options import Choice
from harness.clusters.base.options import Options
from harness.commands.catalogue import jobs
from harness.contracts import Mode, Verdict
from harness.expectation import Lack, Shortfall
from harness.scenario import Scenario
from reports.catalogue_account import CatalogueAccount
from reports.course import Course
from reports.model import Reason, RunReport
from reports.required import Required
from reports.summary import WIDTH, Account
from suites.scenarios import hazards
from suites.scenarios.hazards import Hazard, Kind, Needs, safe_way

FOUND = hazards.found()


def hazard(name: str, **changes: Any) -> Hazard:
    unsafe = Scenario(
        name=f"control-{name}",
        mode=Mode.AT_LEAST_ONCE,
        expected=Verdict.VIOLATED,
        requires={"lost": 2},
        control=True,
        hazard=name,
    )
    texts = {"title": f"How {name} breaks", "at_risk": "everybody", "cure": f"Avoid {name}."}
    return Hazard(**{"kind": Kind.CONSUMERS, "unsafe": unsafe, "safe": safe_way(unsafe), **texts, **changes})


def false_alarm(name: str) -> Hazard:
    safe = Scenario(name=f"safe-{name}", mode=Mode.AT_LEAST_ONCE, hazard=name)
    return hazard(name, kind=Kind.FALSE_ALARMS, unsafe=None, safe=safe)


def run_of(scenario: Scenario, verdict: str = "", lost: int = 0, **changes: Any) -> RunReport:
    missed = [Shortfall(Lack.MISSED, "too few")] if lost < scenario.requires.get("lost", 0) else []
    run = RunReport(
        run_id=scenario.name, path=Path(scenario.name), scenario=scenario.name, mode=scenario.mode,
        judged_as=scenario.mode, fault="none", control=scenario.control, hazard=scenario.hazard,
        expected=scenario.expected, verdict=verdict or scenario.expected, seed=1, started=None, command="",
        violations=(Reason("lost", lost, "an ack is a promise"),) if lost else (),
        requirement=Required(scenario.requires, {"lost": lost} if scenario.requires else {}, tuple(missed)),
        counts={"attempted": 1200, "acked": 1000},
    )  # fmt: skip
    return replace(run, **changes)


def account(
    chosen: dict[str, Hazard], runs: Sequence[RunReport], colour: bool = False, **course: Any
) -> Account:
    planned = sum(len(each.scenarios) for each in chosen.values())
    return CatalogueAccount(chosen)(runs, Path("report.html"), 1, {}, Course(planned, **course), colour)


# --- the list and bad use ----------------------------------------------------------------------------


def test_the_list_has_every_hazard_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[1:-2] if not line.startswith(" ")} == set(FOUND)
    assert max(map(len, lines)) <= WIDTH


def test_the_list_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)["hazards"]}
    assert set(rows) == set(FOUND)
    assert rows["acks1_failover"]["requires"] == {"lost": 1}
    assert rows["acks1_failover"]["class"] == "broker durability"


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    return output.err


@pytest.mark.parametrize("typed", ["acks1", "acks1_failovr", "failover"])
def test_an_unknown_name_lists_near_ones(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["catalogue", "acks0_loss", typed], capsys)
    assert f"catalogue {typed}: " in line
    assert "acks1_failover" in line


def test_a_name_that_is_near_to_none_says_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["catalogue", "zzzzzz"], capsys)
    assert "did you mean" not in line
    assert "./onceproof catalogue lists all" in line


@pytest.mark.parametrize("words", [["acks0_loss", "--all"], ["--quick", "--all"]])
def test_names_quick_and_all_exclude_each_other(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "only one of them" in refused(["catalogue", *words], capsys)


def test_folders_that_cannot_be_written_are_refused_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--runs /proc/runs: cannot be written" in refused(
        ["catalogue", "--quick", "--runs", "/proc/runs"], capsys
    )


def test_an_unknown_kind_of_cluster_is_refused_first(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["catalogue", "acks0_loss", "--cluster", "moon"], capsys)
    assert line.startswith("onceproof: --cluster moon: unknown kind")


def test_quick_has_at_most_one_hazard_of_each_class() -> None:
    kinds = [each.kind for each in FOUND.values() if each.quick]
    assert kinds
    assert len(set(kinds)) == len(kinds)


# --- clusters ----------------------------------------------------------------------------------------


def test_hazards_with_equal_needs_share_a_cluster_and_the_usual_one_is_first() -> None:
    settings = {"flush.messages": "1"}
    chosen = {
        "a": hazard("a", needs=Needs(settings=settings)),
        "b": hazard("b"),
        "c": hazard("c", needs=Needs(settings=dict(settings))),
        "d": false_alarm("d"),
        "e": hazard("e", needs=Needs(options=Options(fuse=True), kafka="3.9.2")),
    }
    choice = Choice(security="ssl", kafka="4.0.0")
    got = jobs(chosen, choice, 7)
    assert [[s.name for s in scenarios] for _, scenarios, _ in got] == [
        ["control-b", "safe-b", "safe-d"],
        ["control-a", "safe-a", "control-c", "safe-c"],
        ["control-e", "safe-e"],
    ]
    usual, flushing, older = (choice for choice, _, _ in got)
    assert usual == choice
    assert flushing == replace(choice, settings=settings)
    assert older == replace(choice, options=Options(fuse=True), kafka="3.9.2")
    assert {s.seed for _, scenarios, _ in got for s in scenarios} == {7}
    (_, (first, *_), again) = got[0]
    assert again(first) == "./onceproof catalogue b --kafka 4.0.0 --security ssl --seed 7"


def test_a_release_that_makes_the_safe_way_safe_is_used_for_it_alone() -> None:
    older = hazard("a", needs=Needs(kafka="3.5.2"), safe_needs=Needs())
    got = jobs({"a": older, "b": hazard("b")}, Choice(), 1)
    assert [(choice.kafka, [s.name for s in scenarios]) for choice, scenarios, _ in got] == [
        (Choice().kafka, ["safe-a", "control-b", "safe-b"]),
        ("3.5.2", ["control-a"]),
    ]


def test_a_hazard_that_spoils_its_cluster_has_one_for_each_run() -> None:
    got = jobs({"a": hazard("a", needs=Needs(alone=True)), "b": hazard("b")}, Choice(), 1)
    assert [[s.name for s in scenarios] for _, scenarios, _ in got] == [
        ["control-b", "safe-b"],
        ["control-a"],
        ["safe-a"],
    ]


# --- the account of the runs -------------------------------------------------------------------------


def runs_of(chosen: Hazard, lost: int = 5) -> list[RunReport]:
    return [run_of(s, lost=lost if s.requires else 0) for s in chosen.scenarios]


def test_the_data_has_the_score_and_false_alarms_count_as_controls() -> None:
    chosen = {"a": hazard("a"), "gaps": false_alarm("gaps")}
    runs = [run for each in chosen.values() for run in runs_of(each)]
    got = account(chosen, runs, seconds={"control-a": 10.0, "safe-a": 5.5, "safe-gaps": 3.0})
    assert got.code == 0
    data = dict(got.data)
    assert data.pop("hazards") == [
        {
            "id": "a", "class": "consumer commits and groups", "expected": "lost", "lower_bound": 2,
            "verdict": "VIOLATED", "found": 5, "caught": True, "control_verdict": "HELD",
            "control_held": True, "seconds": 15.5,
        }
    ]  # fmt: skip
    assert data.pop("false_alarms") == [{"id": "gaps", "verdict": "HELD", "held": True, "seconds": 3.0}]
    assert data == {
        "hazards_total": 1, "caught": 1, "controls_total": 2, "held": 2, "report": "report.html",
        "skipped": [], "planned": 3, "ended": "complete", "errors": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("unsafe", "safe", "caught", "held", "code"),
    [
        ({"lost": 5}, {}, True, True, 0),
        ({"lost": 1}, {}, False, True, 1),  # fewer than required
        ({"verdict": "HELD"}, {}, False, True, 1),
        ({"lost": 5}, {"verdict": "VIOLATED", "lost": 1}, True, False, 1),
        ({"lost": 5}, {"verdict": "INCONCLUSIVE"}, True, False, 3),
        ({"verdict": "INCONCLUSIVE"}, {}, False, True, 3),
        ({"lost": 5, "error": "damaged"}, {}, False, True, 2),
    ],
)
def test_the_code_is_0_only_if_all_are_caught_and_all_safe_ways_held(
    unsafe: dict[str, Any], safe: dict[str, Any], caught: bool, held: bool, code: int
) -> None:
    one = hazard("a")
    assert one.unsafe
    assert one.safe
    got = account({"a": one}, [run_of(one.unsafe, **unsafe), run_of(one.safe, **safe)])
    assert (got.code, got.data["caught"], got.data["held"]) == (code, int(caught), int(held))


def test_a_skipped_hazard_is_not_caught_and_proves_nothing() -> None:
    chosen = {"a": hazard("a"), "b": hazard("b")}
    reasons = {"control-b": "FUSE disks: no root", "safe-b": "FUSE disks: no root"}
    got = account(chosen, runs_of(chosen["a"]), skipped=reasons)
    assert got.code == 3
    assert (got.data["hazards_total"], got.data["caught"], got.data["held"]) == (2, 1, 1)
    assert got.data["skipped"] == [{"scenario": k, "reason": v} for k, v in reasons.items()]
    assert got.data["hazards"][1]["verdict"] is None
    assert "FUSE disks: no root" in got.text
    assert "not as required: b" in got.text


def test_the_text_has_a_line_and_sentences_for_each_hazard() -> None:
    chosen = {"a": hazard("a"), "gaps": false_alarm("gaps")}
    runs = [run for each in chosen.values() for run in runs_of(each)]
    text = account(chosen, runs, seconds={"control-a": 10.0, "safe-a": 5.5}).text
    lines = text.splitlines()
    assert lines[1].split() == ["✓", "a", "lost", ">=", "2", "lost", "5", "VIOLATED", "HELD", "15.5"]
    assert "a: How a breaks." in lines
    assert any("lost 5 (acknowledged, but nowhere in the log)" in line for line in lines)
    assert any("Cure: Avoid a." in line for line in lines)
    assert "1 of 1 hazard caught" in lines[-1]
    assert max(map(len, lines)) <= WIDTH
    assert "\033" not in text
    assert "\033[32m" in account(chosen, runs, colour=True).text
