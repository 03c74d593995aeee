"""Numbers and settings read the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from reports import words
from reports.model import Report
from reports.sections import environment, matrix
from reports.summary import read
from tests.reports.sample import sample_runs


@pytest.mark.parametrize(
    ("value", "text"), [(None, words.NOTHING), (0, "0.0 s"), (0.34, "340 ms"), (3.42, "3.4 s"),
                        (251.3, "4 min 11 s"), (0.9999, "1.0 s"), (7300, "2 h 1 min")]
)  # fmt: skip
def test_seconds(value: float | None, text: str) -> None:
    assert words.seconds(value) == text


def test_every_anomaly_has_a_meaning() -> None:
    assert set(registry.names("finder")) <= set(words.MEANINGS), "add it to MEANINGS in reports/words.py"


def test_numbers() -> None:
    assert [words.number(v) for v in (None, 0, 1234567, 0.25)] == [words.NOTHING, "0", "1,234,567", "0.25"]
    assert [words.short_number(v) for v in (999, 57_209, 6_720_000, 3e9)] == ["999", "57.2k", "6.72M", "3G"]


def test_evidence_has_its_units_and_no_empty_values() -> None:
    assert words.measures({"append_ms": 52.4, "sent_s": 4, "note": "", "reader": None, "links_cut": 6}) == [
        ("append", "52.4 ms"), ("sent", "4 s"), ("links cut", "6"),
    ]  # fmt: skip


def test_nested_settings_become_rows() -> None:
    settings = {"topic": {"partitions": 3}, "schedule": [{"hold_s": 4.0}], "extra": {}, "ok": True}
    assert list(words.flat(settings)) == [
        ("topic.partitions", "3"), ("schedule[0].hold_s", "4"), ("extra", words.NOTHING), ("ok", "yes"),
    ]  # fmt: skip


def test_runs_on_one_cluster_say_it_once_and_a_full_cell_sums_up(tmp_path: Path) -> None:
    runs = read(sample_runs(tmp_path, copies=3, broken=["exactly_once-kill-leader"]))
    report = Report("t", "", 7, {}, None, None, runs)
    clusters = environment.section(report)["clusters"]
    assert [c["label"] for c in clusters] == ["all runs"]
    rows = dict(matrix.section(report)["rows"])
    cell = rows["exactly-once"][0]
    assert cell.sentence == "3 runs: 3 VIOLATED"
    assert (cell.total("lost"), cell.forbidden("lost")) == (51, True)
    assert list(rows) == ["at-most-once", "at-least-once", "exactly-once"]
