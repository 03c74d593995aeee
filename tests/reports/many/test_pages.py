"""Pages about nights and comparisons: what they show, what they leave out, and that foreign text stays text."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from harness.cli import main
from harness.ledger.rundir import RunDir
from reports.build import build
from reports.many.comparison import Comparison
from reports.many.links import folder_link
from tests.reports.conftest import HOSTILE
from tests.reports.many.sample_night import sample_night, scenarios
from tests.reports.many.sample_trends import night_before, rows_of, store
from tests.reports.sample import VERSIONS, sample_runs
from tests.reports.test_build import Page

NAMES = [each.name for each in scenarios()]
OWN = ("night", "coverage", "trends", "comparison")


def written(root: Path, runs: list[RunDir], **more: Any) -> Path:
    known: dict[str, Any] = {"title": "t", "command": "c", "seed": 7, "started": None, "seconds": 1.0}
    return build(runs, root / "report.html", versions=VERSIONS, **{**known, **more})


def night_page(root: Path, *, trends: bool = False, **more: Any) -> Path:
    journal, runs = sample_night(
        root, broken={NAMES[3]: {"lost": 5}}, quiet={NAMES[7]}, not_reached=1, **more
    )
    name = journal.file.parent.name
    if trends:
        rows = rows_of(name, runs)
        store(root, [*rows, *(row for n in (1, 2, 3) for row in night_before(rows, n, broken=6))])
    return reported(root, name)


def reported(root: Path, name: str) -> Path:
    """Return the page that `report --night` writes beside the runs."""
    out = root / "report.html"
    assert main(["report", "--night", name, "--runs", str(root), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return read(night_page(tmp_path_factory.mktemp("night"), trends=True))


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def sections(page: Page) -> set[str]:
    return {str(a["id"]) for a in page.having("section") if "id" in a}


def text(page: Page) -> str:
    return " ".join("".join(page.text).split())


def test_the_first_screen_of_a_night_is_answer_proof_findings_coverage_trends(night: Page) -> None:
    ids = [a.get("id") or a.get("aria-labelledby") for a in night.having("section")]
    assert ids[:4] == ["headline", "night", "coverage", "trends"]
    shown = text(night)
    assert "A promise was violated" in shown
    assert "The canary, an unsafe scenario among the others, was found." in shown
    assert "8 of 9 scenarios run" in shown
    assert "1 finding: 1 new, 0 known; 1 gone" in shown


def test_a_finding_has_its_rates_its_command_and_its_smallest_test(night: Page) -> None:
    shown = text(night)
    assert "Replayed: 2 of 2 (100.0%; 95% interval 34.2% to 100.0%)" in shown
    assert "def test_exactly_once_shows_no_lost(execute):" in shown
    assert f"./onceproof prove --only {NAMES[3]} --seed 7" in shown
    assert "Scenarios that were not reached in the time: 1" in shown


def test_links_lead_to_runs_filters_and_folders(night: Page) -> None:
    ids = {a["id"] for _, a in night.elements if "id" in a}
    links = [str(a["href"]) for a in night.having("a")]
    filters = [link for link in links if link.startswith("#runs?")]
    folders = [link for link in links if link.startswith("./")]
    assert {link[1:] for link in links if link not in (*filters, *folders)} <= ids
    asked = [{name: value[0] for name, value in parse_qs(link[len("#runs?") :]).items()} for link in filters]
    assert {"mode": "exactly_once", "faults": "kill"} in asked
    assert len(folders) == 3 * 4, "a point of each earlier night in each of four lines"
    assert f"./{NAMES[6]}/before-1/" in folders


def test_the_page_of_a_night_can_be_read_without_seeing_it(night: Page) -> None:
    assert night.open == []
    ids = Counter(a["id"] for _, a in night.elements if "id" in a)
    assert set(ids.values()) == {1}
    assert all("scope" in a for a in night.having("th"))
    assert len(night.having("caption")) == len(night.having("table"))
    assert all(a.get("aria-label") for _, a in night.elements if a.get("role") in ("img", "region"))
    assert all(a.get("aria-label") for a in night.having("select"))
    gaps = [a for a in night.having("td") if a.get("class") == "gap"]
    assert gaps
    assert all("not run this night" in str(a["title"]) for a in gaps)


def test_without_a_store_there_are_no_trends_and_nothing_is_new(tmp_path: Path) -> None:
    page = read(night_page(tmp_path))
    assert sections(page) & set(OWN) == {"night", "coverage"}
    assert "it is not known which ones are new" in text(page)


def test_a_blind_night_is_red(tmp_path: Path) -> None:
    path = night_page(tmp_path, blind=True)
    page = read(path)
    assert "The canary was not found: this night proves nothing" in text(page)
    assert "verdict bad" in [a.get("class") for a in page.having("section")]
    assert json.loads(path.with_suffix(".json").read_text())["exit_code"] == 1


def test_a_night_that_never_ran_its_canary_is_red_although_its_runs_held(tmp_path: Path) -> None:
    journal, _ = sample_night(tmp_path, not_reached=7)
    data = json.loads(reported(tmp_path, journal.file.parent.name).with_suffix(".json").read_text())
    assert {run["verdict"] for run in data["runs"]} == {"HELD"}
    assert (data["exit_code"], data["headline"][:28]) == (1, "The canary was not found: th")


def test_other_reports_show_nothing_of_nights(tmp_path: Path) -> None:
    runs = sample_runs(tmp_path / "runs")
    page = read(written(tmp_path, runs))
    assert not sections(page) & set(OWN)
    assert "matrix" in sections(page)
    assert "canary" not in text(page)


def test_a_comparison_shows_both_sets(tmp_path: Path) -> None:
    first = sample_runs(tmp_path / "a", copies=2)
    second = sample_runs(tmp_path / "b", copies=2, broken=["exactly_once-kill-leader"])
    page = read(written(tmp_path, [*first, *second], comparison=Comparison("old", "new", len(first))))
    assert sections(page) & {*OWN, "matrix"} == {"comparison"}
    shown = text(page)
    assert "A old26 runs, 8 of 8 controls as requiredKafka 4.3.1, confluent-kafka 2.16.1" in shown
    assert "B new26 runs" in shown
    sets = Counter(a.get("data-set") for a in page.having("details"))
    assert (sets["A"], sets["B"]) == (26, 26)
    assert page.open == []
    asked = [str(a["href"]) for a in page.having("a") if str(a["href"]).startswith("#runs?set=B")]
    assert "#runs?set=B&mode=exactly_once&faults=kill" in asked


@pytest.mark.parametrize("kind", ["night", "comparison"])
def test_foreign_text_stays_text(tmp_path: Path, kind: str) -> None:
    if kind == "night":
        path = night_page(tmp_path, text=HOSTILE)
    else:
        first, second = (sample_runs(tmp_path / each, text=HOSTILE) for each in "ab")
        path = written(tmp_path, [*first, *second], comparison=Comparison(HOSTILE, HOSTILE, 13))
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert HOSTILE in "".join(page.text)
    assert not page.having("img")
    assert "<img" not in html
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    links = [str(a.get("href") or a.get("src")) for _, a in page.elements if "href" in a or "src" in a]
    assert all(re.match(r"(#|\./|data:)", link) for link in links)


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("a/1", "./runs/a/1/"),
        ("javascript:alert(1)", "./runs/javascript%3Aalert%281%29/"),
        ('"><img src=x>', "./runs/%22%3E%3Cimg%20src%3Dx%3E/"),
        ("../../etc", ""),
        ("/etc", ""),
    ],
)
def test_links_to_folders_stay_below_the_runs(tmp_path: Path, name: str, link: str) -> None:
    assert folder_link(tmp_path.resolve(), tmp_path / "runs", name) == link
