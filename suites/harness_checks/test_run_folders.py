"""Run folders on a real cluster: each run keeps its own part of the brokers' logs, and packed runs can be judged again."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from harness.assessment import assess
from harness.campaign import Execute, Result
from harness.ledger.packing import pack
from harness.ledger.rundir import read_json
from harness.reconcile.spark.session import spark
from suites.scenarios import matrix

_TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}\]", re.MULTILINE)
RUNS = 3


@pytest.mark.conformance
def test_logs_of_runs_do_not_grow_and_packed_runs_are_judged_as_before(execute: Execute) -> None:
    """TRUST R6."""
    results = [execute(replace(matrix.QUICK[1], name=f"folder-{number}")) for number in range(RUNS)]
    for result in results:
        logs = sorted((result.run.logs / "cluster").glob("broker-*.log"))
        assert len(logs) == 3
        times = [time for log in logs for time in _TIME.findall(log.read_text(errors="replace"))]
        assert times, "brokers log while leaders move"
        assert min(times) >= _began(result), "no log lines from before this run"
    sizes = [_size(result.run.logs / "cluster") for result in results]
    print(f"\nlogs of {RUNS} runs: {sizes} bytes")
    last = results[-1]
    before, stored = _size(last.run.path), read_json(last.run.verdict, "")
    if not stored["as_expected"]:
        pytest.fail(last.explain())
    assert pack(last.run, "evidence") == ""
    print(f"the run folder: {before} bytes, packed {_size(last.run.path)}")
    assert _size(last.run.path) < before / 4
    reconciled, judgement = assess(last.run, spark())
    assert judgement.to_json() == stored
    assert reconciled["counts"] == last.reconciled["counts"]
    assert not last.run.tables.exists(), "the tables were made for this and removed again"


def _began(result: Result) -> str:
    """Return the start of the run in the time format of brokers."""
    wall = datetime.fromisoformat(str(result.run.read_manifest()["clock"]["wall"]))
    return wall.strftime("%Y-%m-%d %H:%M:%S")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
