"""The page is one file that needs nothing, keeps foreign text as text, and can be read without seeing it."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir
from reports.build import build
from reports.model import INCONCLUSIVE
from tests.reports.conftest import HOSTILE
from tests.reports.sample import VERSIONS

VOID = {"meta", "link", "br", "input", "rect", "polyline", "img"}


class Page(HTMLParser):
    """The elements of a page and its text, and whether every element is closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def having(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def good(sample: list[RunDir], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("good") / "new" / "report.html"
    return build(sample, out, title="sample", command="./onceproof prove", seed=7, versions=VERSIONS,
                 started="2026-01-01", seconds=251.3)  # fmt: skip


def test_the_verdict_comes_first(good: Path) -> None:
    html = good.read_text(encoding="utf-8")
    body = html[html.index("<main") :]
    places = [
        body.index(part) for part in ("All 9 promises held", 'id="matrix"', 'id="controls"', 'id="runs"')
    ]
    assert places == sorted(places)
    assert all(f'id="run-{n}"' in body for n in range(1, 14))


def test_nothing_is_loaded_from_elsewhere(good: Path) -> None:
    html = good.read_text(encoding="utf-8")
    page = Page(html)
    sources = [a.get("src") or a.get("href") or "" for _, a in page.elements if "src" in a or "href" in a]
    assert all(s.startswith(("#", "data:")) for s in sources)
    assert "@import" not in html
    assert "url(" not in html
    policy = next(a["content"] or "" for a in page.having("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert set(re.findall(r"https?://[^\s/\"')]+", html)) <= {"https://github.com", "http://www.w3.org"}


def test_foreign_text_stays_text(hostile_page: Path) -> None:
    html = hostile_page.read_text(encoding="utf-8")
    page = Page(html)
    assert not page.having("img")
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert "<img" not in html
    assert HOSTILE in "".join(page.text)
    kinds = Counter(a.get("type") for a in page.having("script"))
    assert kinds == {None: 1, "application/json": 12}, (
        "one script, and one chart for each run that has a timeline"
    )
    assert len(page.having("style")) == 1


def test_the_page_is_whole_and_readable_without_seeing_it(hostile_page: Path) -> None:
    page = Page(hostile_page.read_text(encoding="utf-8"))
    assert page.open == []
    ids = Counter(a["id"] for _, a in page.elements if "id" in a)
    assert set(ids.values()) == {1}
    assert {(a["href"] or "")[1:] for a in page.having("a")} <= set(ids)
    assert all("scope" in a for a in page.having("th"))
    assert len(page.having("caption")) == len(page.having("table"))
    assert all(a.get("aria-label") for _, a in page.elements if a.get("role") in ("img", "region"))


def test_a_crashed_run_is_on_the_page(hostile_page: Path) -> None:
    text = "".join(Page(hostile_page.read_text(encoding="utf-8")).text)
    assert "not reconciled: there is no reconciled.json" in text
    assert "at_least_once-sever-leader" in text
    assert "A promise was violated" in text


def test_open_transactions_are_listed_with_the_reasons(hostile_page: Path) -> None:
    text = "".join(Page(hostile_page.read_text(encoding="utf-8")).text)
    assert "stalled a transaction of producer id 6 is open" in text


def test_the_json_says_the_same(hostile_page: Path) -> None:
    written = json.loads(hostile_page.with_suffix(".json").read_text(encoding="utf-8"))
    assert written["headline"] == "A promise was violated"
    assert (written["exit_code"], written["seed"], len(written["runs"])) == (1, 7, 13)
    crashed = next(r for r in written["runs"] if r["scenario"] == "at_least_once-sever-leader")
    assert (crashed["verdict"], crashed["standing"]) == (INCONCLUSIVE, "proves nothing")
    first = written["runs"][0]
    assert first["windows"][0]["bit"] is True
    assert len(first["timeline"]["acked"]) == 64
    assert Path(first["run_dir"]).is_dir()


def test_paths_are_relative_to_the_report(hostile_page: Path) -> None:
    html = hostile_page.read_text(encoding="utf-8")
    assert str(hostile_page.parent) not in html
    assert "runs/exactly_once-kill-leader/" in html


def test_no_runs_prove_nothing(tmp_path: Path) -> None:
    out = build(
        [], tmp_path / "r.html", title="t", command="", seed=None, versions={}, started=None, seconds=None
    )
    assert "Nothing was proven" in out.read_text(encoding="utf-8")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.html", "r.json"], "and no draft is left"


def test_a_run_that_cannot_be_read_is_on_the_page(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "damaged")
    run.manifest.write_text('{"scenario": {"name": 3, "mode": null}, "cluster": [1]}', encoding="utf-8")
    odd = {"counts": {"lost": None}, "coverage": {"gaps": 3, "errors": "x", "windows": [{}], "reads": []},
           "timeline": {"bucket_s": 0, "t_s": [1, 2]}, "findings": [{}],
           "latency_ms": {"p50": "x"}}  # fmt: skip
    run.reconciled.write_text(json.dumps(odd), encoding="utf-8")
    out = build(
        [run], tmp_path / "r.html", title="t", command="", seed=None, versions={}, started=None, seconds=1
    )
    assert "manifest.json: ledger version None" in out.read_text(encoding="utf-8")
