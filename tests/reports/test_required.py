"""Reports say what a run had to raise, what was found and why that is not enough: in the page, the table, the exit code."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Mode, Verdict
from harness.expectation import Standing
from harness.ledger.rundir import RunDir, read_json, write_json
from harness.verdict import Settings, judge
from reports.build import build
from reports.headline import headline
from reports.summary import WIDTH, exit_code, read, row, table
from tests.reports.sample import VERSIONS, sample_runs
from tests.test_verdict import WINDOW, reconciled


def page(runs: list[RunDir], folder: Path) -> str:
    """The text of the report's table of controls."""
    made = build(runs, folder / "report.html", title="t", command="c", seed=7, versions=VERSIONS,
                 started="2026-01-01", seconds=1.0)  # fmt: skip
    text = made.read_text(encoding="utf-8")
    part = text[text.index('id="controls"') : text.index('id="runs"')]
    return html.unescape(re.sub(r"<[^>]+>", " ", part))


def rejudged(
    folder: Path, settings: Settings, guarantee: Mode = Mode.AT_LEAST_ONCE, **changes: Any
) -> RunDir:
    """The sample's acks0_loss, with the verdict that the judge gives for these changes."""
    run = next(run for run in sample_runs(folder) if run.path.parent.name == "acks0_loss")
    found = reconciled(**changes)
    manifest = read_json(run.manifest, "")
    manifest["scenario"] |= {"guarantee": guarantee, "expected": settings.expected}
    write_json(run.manifest, manifest)
    results = {name: found[name] for name in ("counts", "compared", "crashed")}
    write_json(run.reconciled, {**read_json(run.reconciled, ""), **results, "findings": []})
    write_json(run.verdict, judge(found, guarantee, settings).to_json())
    return run


CONTROL = Settings(expected=Verdict.VIOLATED, windows=1, requires={"lost": 1})


def test_the_table_of_controls_shows_required_and_found(sample: list[RunDir], tmp_path: Path) -> None:
    shown = page(sample, tmp_path)
    assert "required: lost >= 1; found: lost 532" in shown
    assert "required: duplicated >= 1; found: duplicated 2000; also: reordered 118" in shown
    assert "nothing forbidden" in shown, "a control that has to be HELD requires nothing"


def test_the_terminal_shows_required_and_found(sample: list[RunDir]) -> None:
    lines = table(read(sample)).splitlines()
    by_scenario = {line.split()[1]: line for line in lines if "required:" in line}
    assert by_scenario["acks0_loss"].endswith("required: lost >= 1; found: lost 532")
    assert by_scenario["at_most_once-kill-leader"].endswith("required: lost >= 1; found: lost 214")
    assert set(by_scenario) == {
        "acks0_loss",
        "retry_duplicates",
        "aborted_uncommitted",
        "at_most_once-kill-leader",
    }
    assert max(map(len, lines)) <= WIDTH


# TRUST T3
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"crashed": {"lost": "KeyError: x"}, "counts": {"phantom": 1}}, "the finder of lost crashed"),
        ({"windows": [WINDOW | {"bit": False, "proof": ""}], "counts": {"lost": 2}}, "did not bite"),
        ({"counts": {"phantom": 1}}, "required: lost >= 1; found: lost 0"),
    ],
    ids=["own finder crashed", "no bite", "another anomaly"],
)
def test_a_missed_control_is_shown_and_fails(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    run = rejudged(tmp_path, CONTROL, **changes)
    (shown,) = read([run])
    assert (shown.verdict, shown.standing) == ("VIOLATED", Standing.MISSED)
    assert exit_code([shown]) == 1
    assert headline([shown]).sentence == "1 control did not catch what was planted"
    assert says in page([run], tmp_path)
    assert says in table([shown])
    as_json = json.loads(json.dumps(row(shown)))
    assert as_json["as_expected"] is False
    assert any(says in reason for reason in as_json["shortfalls"])


def test_a_violation_that_was_not_planted_is_a_violation(tmp_path: Path) -> None:
    (shown,) = read([rejudged(tmp_path, CONTROL, counts={"lost": 2, "phantom": 1})])
    assert shown.standing is Standing.BROKEN
    assert shown.required == "required: lost >= 1; found: lost 2; also: phantom 1"
    assert "phantom 1 is forbidden and not planted by this control" in table([shown])


def test_counted_losses_that_are_missing_are_missed(tmp_path: Path) -> None:
    settings = Settings(windows=1, requires={"lost": 1})
    (enough,) = read([rejudged(tmp_path / "a", settings, Mode.AT_MOST_ONCE, counts={"lost": 2})])
    assert (enough.standing, exit_code([enough])) == (Standing.AS_PROMISED, 0)
    (none,) = read([rejudged(tmp_path / "b", settings, Mode.AT_MOST_ONCE)])
    assert (none.verdict, none.standing, exit_code([none])) == ("HELD", Standing.MISSED, 1)


def test_a_control_judged_by_an_older_version_proves_nothing(tmp_path: Path) -> None:
    run = rejudged(tmp_path, CONTROL, counts={"lost": 2})
    judged = dict(read_json(run.verdict, ""))
    for name in ("required", "found", "standing", "shortfalls"):
        del judged[name]
    write_json(run.verdict, judged)
    (shown,) = read([run])
    assert (shown.standing, exit_code([shown])) == (Standing.UNPROVEN, 3)
    assert "reconcile the run again" in table([shown])


@pytest.mark.parametrize(
    "damage",
    [{"required": ["lost"]}, {"shortfalls": [3, {"kind": "odd"}, {"kind": []}]}, {"found": {"lost": "many"}}],
    ids=str,
)
def test_damaged_requirements_make_a_run_unreadable(tmp_path: Path, damage: dict[str, Any]) -> None:
    run = rejudged(tmp_path, CONTROL, counts={"lost": 2})
    write_json(run.verdict, {**read_json(run.verdict, ""), **damage})
    (shown,) = read([run])
    assert shown.standing is Standing.UNREADABLE
    assert "cannot be read" in table([shown])
