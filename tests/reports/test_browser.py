"""The report in a real browser: charts are drawn, nothing fails, nothing is asked of the network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir
from harness.provision.browser import find_browser
from reports.build import build
from tests.reports.sample import VERSIONS

CHROMIUM = find_browser()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and "CI" not in os.environ,  # there it fails: `./onceproof tox` installs one
        reason="REPORT NOT TESTED IN A BROWSER: chromium is missing (Debian: apt-get install chromium)",
    ),
]


def opened(page: Path, fragment: str, tmp_path: Path, clock: str = "--virtual-time-budget=5000") -> str:
    """Return the page's elements after its scripts have run. No host name resolves, so Chromium cannot load anything."""
    assert CHROMIUM is not None
    arguments = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", clock,
        "--window-size=1200,1600",  # charts are drawn near the screen only: both of a run have room on it
        "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", f"{page.as_uri()}{fragment}",
    ]  # fmt: skip
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout


def test_a_run_that_is_opened_gets_its_charts(sample: list[RunDir], tmp_path: Path) -> None:
    out = build(sample, tmp_path / "report.html", title="sample", command="./onceproof prove", seed=7,
                versions=VERSIONS, started=1.76e9, seconds=251.3)  # fmt: skip
    shown = opened(out, "#run-4", tmp_path)
    assert 'data-errors="0"' in shown
    assert len(re.findall("<canvas", shown)) == 2, "the open run has two charts; no other run was drawn"
    assert 'id="run-4" data-standing="as promised" open' in shown
    assert "u-legend" in shown


def test_a_page_that_asks_for_something_is_caught(hostile_page: Path, tmp_path: Path) -> None:
    """The policy of the page forbids every load and counts each try as an error: so 0 errors mean no load."""
    asking = tmp_path / "asking.html"
    html = hostile_page.read_text(encoding="utf-8")
    asking.write_text(
        html.replace("</body>", '<img src="https://example.invalid/x.png"></body>'), encoding="utf-8"
    )
    assert 'data-errors="1" data-error="blocked: img-src' in opened(asking, "", tmp_path)


def test_hostile_texts_run_nothing(hostile_page: Path, tmp_path: Path) -> None:
    shown = opened(hostile_page, "#run-7", tmp_path)
    assert 'data-errors="0"' in shown
    assert "data-owned" not in shown
    assert len(re.findall("<canvas", shown)) == 2


def test_a_run_without_acks_says_so(sample: list[RunDir], tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "silent")
    shutil.copy(sample[0].manifest, run.manifest)
    shutil.copy(sample[0].verdict, run.verdict)
    reconciled = json.loads(sample[0].reconciled.read_text(encoding="utf-8"))
    empty = [None] * len(reconciled["timeline"]["t_s"])
    reconciled["timeline"].update(latency_p50_ms=empty, latency_p99_ms=empty, acked=[0] * len(empty))
    run.reconciled.write_text(json.dumps(reconciled), encoding="utf-8")
    out = build([run], tmp_path / "report.html", title="sample", command="", seed=7, versions={},
                started=None, seconds=None)  # fmt: skip
    shown = opened(out, "#run-1", tmp_path)
    assert 'data-errors="0"' in shown
    assert "No acknowledgement, so no latency." in shown
