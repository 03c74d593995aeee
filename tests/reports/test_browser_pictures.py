"""The pictures of a run in a real browser: drawn when it is opened, without errors, whatever the names are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir, read_json, write_json
from reports.build import build
from tests.reports.conftest import HOSTILE
from tests.reports.sample import sample_runs
from tests.reports.sample_pictures import give_pictures
from tests.reports.test_browser import opened, pytestmark  # noqa: F401  the marks are those of this file, too

CHARTS = 2  # of every run


def pictured(root: Path, text: str = "") -> RunDir:
    """A run that is not as promised, so that it is open, with pictures."""
    name = "at_least_once-kill-leader"
    run = next(r for r in sample_runs(root, broken=[name], text=text) if r.path.parent.name == name)
    give_pictures(run, text)
    return run


def shown(run: RunDir, tmp_path: Path) -> str:
    out = build(
        [run], tmp_path / "r.html", title="t", command="", seed=None, versions={}, started=None, seconds=None
    )
    return opened(out, "#run-1", tmp_path)  # there all of them are near the screen


@pytest.mark.parametrize("text", ["", HOSTILE], ids=["plain", "hostile"])
def test_four_pictures_are_drawn_below_the_charts(tmp_path: Path, text: str) -> None:
    page = shown(pictured(tmp_path / "runs", text), tmp_path)
    assert 'data-errors="0"' in page
    assert "data-owned" not in page
    assert len(re.findall("<canvas", page)) == CHARTS + 4
    drawn = re.findall(r'data-kind="(\w+)"[^>]*><div[^>]*class="uplot', page)
    assert drawn == ["rates", "latency", "leaders", "messages", "members", "lag"]


def test_pictures_that_are_absent_are_not_drawn(tmp_path: Path) -> None:
    run = pictured(tmp_path / "runs")
    stored = read_json(run.pictures, "")
    none = {
        "t_ms": [],
        "ack_ms": [],
        "place": [],
        "fate": [],
        "places": [],
        "fates": stored["messages"]["fates"],
    }
    write_json(run.pictures, {**stored, "leaders": [], "members": [], "lag": None, "messages": none})
    page = shown(run, tmp_path)
    assert 'data-errors="0"' in page
    assert len(re.findall("<canvas", page)) == CHARTS
    assert "Not known for this run." in page, "there are counts of fates, and no dots"


def test_without_pictures_the_charts_are_as_before(tmp_path: Path) -> None:
    run = pictured(tmp_path / "runs")
    run.pictures.unlink()
    page = shown(run, tmp_path)
    assert 'data-errors="0"' in page
    assert len(re.findall("<canvas", page)) == CHARTS
