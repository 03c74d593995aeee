"""A page with many runs has their details compressed, unchanged, and stays below its size."""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import partial
from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir
from reports.build import build
from reports.many.folded import MANY, Folded
from tests.reports.conftest import HOSTILE
from tests.reports.sample import VERSIONS, sample_runs
from tests.reports.test_build import Page

MOST_BYTES = 2_000_000  # of a page with 500 runs


def unpacked(block: str) -> list[str]:
    return list(json.loads(zlib.decompress(base64.b64decode(block), -15)))


def written(runs: list[RunDir], out: Path) -> str:
    build(runs, out, title="t", command="", seed=7, versions=VERSIONS, started=None, seconds=1.0)
    return out.read_text(encoding="utf-8")


def test_details_come_back_as_they_were() -> None:
    folded = Folded(MANY + 1)
    texts = [f"<p>run {number} \u2013 \U0001f600</p>" for number in range(40)]
    places = [str(folded.details({"open": False}, partial(str, text))) for text in texts]
    assert places[0] == '<div class="body" data-folded="0.0"></div>'
    blocks = [unpacked(block) for block in folded.blocks()]
    assert len(blocks) == 3
    for text, place in zip(texts, places, strict=True):
        block, number = map(int, re.findall(r"\d+", place))
        assert blocks[block][number] == text


def test_few_runs_and_open_ones_are_not_compressed() -> None:
    few, many = Folded(MANY), Folded(MANY + 1)
    assert few.details({"open": False}, lambda: "<p>x</p>") == '<div class="body"><p>x</p></div>'
    assert many.details({"open": True}, lambda: "<p>x</p>") == '<div class="body"><p>x</p></div>'
    assert few.blocks() == many.blocks() == []


def test_foreign_text_is_escaped_in_blocks_too(tmp_path: Path) -> None:
    html = written(sample_runs(tmp_path / "runs", copies=4, text=HOSTILE), tmp_path / "r.html")
    blocks = re.findall(r'class="block">([^<]*)</script>', html)
    assert len(blocks) == 4
    details = [text for block in blocks for text in unpacked(block)]
    assert len(details) == 52
    for text in details:
        page = Page(text)
        assert not page.having("img")
        assert page.open == []
    assert any("onerror=" in text for text in details), "the text is there, as text"


@pytest.mark.timeout(120)
def test_a_page_of_500_runs_stays_below_2_mb(tmp_path: Path) -> None:
    runs = sample_runs(tmp_path / "runs", copies=39, broken=["exactly_once-kill-leader"])[:500]
    html = written(runs, tmp_path / "r.html")
    assert html.count('<details class="run ') == 500
    assert 100_000 < len(html.encode()) < MOST_BYTES
