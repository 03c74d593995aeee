"""Runs of hazards in pairs, and their section of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.expectation import Lack, Shortfall
from reports.build import page
from reports.hazard_runs import HazardRuns, hazard_runs
from reports.model import Reason, Report, RunReport, Standing
from reports.required import Required
from reports.sections import catalogue, matrix
from reports.summary import read
from tests.reports.conftest import HOSTILE
from tests.reports.sample import sample_runs

ABOUT = {
    "title": "Leaders die",
    "class": "broker durability",
    "at_risk": "producers with acks=1",
    "cure": "Use acks=all.",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    runs = read(sample_runs(tmp_path_factory.mktemp("sample")))
    return next(run for run in runs if run.scenario == "at_least_once-kill-leader")


def unsafe(plain: RunReport, name: str = "acks1", **changes: object) -> RunReport:
    run = replace(
        plain,
        path=plain.path.parent / f"control-{name}",
        scenario=f"control-{name}",
        control=True,
        hazard=name,
        expected="VIOLATED",
        verdict="VIOLATED",
        violations=(Reason("lost", 12, "an ack is a promise"),),
        requirement=Required({"lost": 1}, {"lost": 12}),
        settings={"about": ABOUT},
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def safe(plain: RunReport, name: str = "acks1", **changes: object) -> RunReport:
    run = replace(
        plain,
        path=plain.path.parent / f"safe-{name}",
        scenario=f"safe-{name}",
        hazard=name,
        settings={"about": ABOUT},
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def report_of(*runs: RunReport) -> Report:
    return Report("t", "", 7, {}, None, None, runs)


def test_unsafe_and_safe_runs_of_a_hazard_are_one_row(plain: RunReport) -> None:
    (row,) = hazard_runs([plain, unsafe(plain), safe(plain)])
    assert (row.name, row.caught, row.held, row.standing) == ("acks1", True, True, Standing.AS_PROMISED)
    assert row.about == ABOUT


def test_repeated_runs_are_paired_in_their_order(plain: RunReport) -> None:
    first, second = hazard_runs([unsafe(plain), unsafe(plain, seed=8), safe(plain)])
    assert (first.held, second.held) == (True, False)
    assert second.standing is Standing.UNPROVEN, "its safe way did not run"


def test_runs_without_texts_about_a_hazard_belong_to_none(plain: RunReport) -> None:
    assert hazard_runs([plain, unsafe(plain, settings={})]) == []
    assert hazard_runs([safe(plain, settings={"about": "a text"})]) == []


def test_a_missed_hazard_is_not_caught_and_gives_its_reason(plain: RunReport) -> None:
    missed = Required(
        {"lost": 5}, {"lost": 2}, (Shortfall(Lack.MISSED, "required: lost >= 5; found: lost 2"),)
    )
    row = HazardRuns("acks1", ABOUT, unsafe(plain, requirement=missed), safe(plain))
    assert (row.caught, row.held, row.standing) == (False, True, Standing.MISSED)
    assert any("lost >= 5; found: lost 2" in sentence for sentence in row.sentences())


def test_a_safe_way_that_is_violated_does_not_hold(plain: RunReport) -> None:
    broken = safe(plain, verdict="VIOLATED", violations=(Reason("lost", 3, "an ack is a promise"),))
    row = HazardRuns("acks1", ABOUT, unsafe(plain), broken)
    assert (row.caught, row.held, row.standing) == (True, False, Standing.BROKEN)


def test_a_false_alarm_needs_no_unsafe_run(plain: RunReport) -> None:
    row = HazardRuns("gaps", {**ABOUT, "class": "false alarms"}, None, safe(plain, "gaps"))
    assert (row.caught, row.held, row.standing) == (False, True, Standing.AS_PROMISED)


def test_the_sentences_have_the_numbers_who_is_at_risk_and_the_cure(plain: RunReport) -> None:
    row = HazardRuns("acks1", ABOUT, unsafe(plain), safe(plain))
    text = "\n".join(row.sentences())
    assert f"{plain.count('acked'):,}" in text
    assert "lost 12 (acknowledged, but nowhere in the log)" in text
    assert "producers with acks=1" in text
    assert "Use acks=all." in text


def test_the_section_links_each_hazard_to_its_runs(plain: RunReport) -> None:
    data = catalogue.section(report_of(plain, unsafe(plain), safe(plain)))
    (row,) = data["rows"]
    assert (data["caught"], data["unsafe"], data["held"]) == (1, 1, 1)
    assert (row["unsafe"][0], row["safe"][0]) == (2, 3)
    assert (row["required"], row["found"]) == ("lost >= 1", "lost 12")


def test_runs_of_hazards_are_in_no_other_table(plain: RunReport) -> None:
    data = matrix.section(report_of(unsafe(plain), safe(plain)))
    assert (data["rows"], data["seeing"], data["calm"]) == ([], [], [])


def test_a_report_without_hazards_has_no_such_section(plain: RunReport, tmp_path: Path) -> None:
    assert catalogue.section(report_of(plain))["links"] == []
    assert 'id="catalogue"' not in page(report_of(plain), tmp_path)


def test_texts_about_hazards_are_escaped(plain: RunReport, tmp_path: Path) -> None:
    about = dict.fromkeys(ABOUT, HOSTILE)
    runs = (unsafe(plain, settings={"about": about}), safe(plain, settings={"about": about}))
    html = page(report_of(*runs), tmp_path)
    assert 'id="catalogue"' in html
    assert "<img src=x" not in html
    assert "&lt;img src=x" in html
