"""report.json has the documented schema: of plain runs, of damaged ones, of a night and of a comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.ledger.rundir import RunDir
from reports.many.comparison import Comparison
from tests.reports.many.test_pages import night_page, written
from tests.reports.sample import sample_runs

jsonschema = pytest.importorskip("jsonschema", reason="REPORT SCHEMA NOT TESTED: jsonschema is missing")
SCHEMA: dict[str, Any] = json.loads(
    (Path(reports.__file__).parent / "schema.json").read_text(encoding="utf-8")
)


def wrong(data: Any) -> list[str]:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return [f"{e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(SCHEMA).iter_errors(data)]


def data_of(path: Path) -> Any:
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def test_a_report_of_runs_has_the_schema(tmp_path: Path) -> None:
    runs = sample_runs(
        tmp_path / "runs",
        broken=["exactly_once-kill-leader"],
        crashed=["no_fault"],
        quiet=["exactly_once-slow_disk-leader"],
    )
    damaged = RunDir.create(tmp_path / "runs", "damaged")
    damaged.manifest.write_text('{"scenario": 3}', encoding="utf-8")
    data = data_of(written(tmp_path, [*runs, damaged]))
    assert len(data["runs"]) == 14
    assert wrong(data) == []


@pytest.mark.parametrize("trends", [False, True])
def test_the_report_of_a_night_has_the_schema(tmp_path: Path, trends: bool) -> None:
    data = data_of(night_page(tmp_path, trends=trends))
    assert wrong(data) == []
    assert ("differences" in data) == trends
    assert data["night"]["findings"][0]["state"] == ("new" if trends else None)
    assert {cell["kind"] for cell in data["night"]["coverage"]["mode"]} == {
        "covered",
        "violated",
        "no effect",
        "gap",
    }


def test_a_comparison_has_the_schema(tmp_path: Path) -> None:
    first, second = (sample_runs(tmp_path / each, copies=2) for each in "ab")
    data = data_of(written(tmp_path, [*first, *second], comparison=Comparison("a", "b", 26)))
    assert wrong(data) == []
    assert data["comparison"]["split"] == 26


def test_every_key_is_described(tmp_path: Path) -> None:
    data = data_of(written(tmp_path, sample_runs(tmp_path / "runs")))
    assert set(data) <= set(SCHEMA["properties"])
    assert set(data["runs"][0]) == set(SCHEMA["$defs"]["run"]["properties"])


@pytest.mark.parametrize("changed", [{"exit_code": "0"}, {"runs": [{}]}, {"more": 1}, {"night": {}}])
def test_other_data_does_not_have_it(tmp_path: Path, changed: dict[str, Any]) -> None:
    data = data_of(written(tmp_path, sample_runs(tmp_path / "runs")))
    assert wrong({**data, **changed}) != []
