"""The section about faults, and the matrix, which is transposed when there are many faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import reports
from reports.build import _sections
from reports.model import Report, RunReport
from reports.sections import faults, matrix
from reports.summary import read
from tests.reports.sample import sample_runs


def test_every_section_has_its_own_place_and_a_template() -> None:
    places = [module.PLACE for module in _sections().values()]
    assert places == sorted(set(places))
    templates = {path.stem for path in (Path(reports.__file__).parent / "templates").glob("*.html")}
    assert set(_sections()) <= templates
    assert next(iter(_sections())) == "verdict", "the verdict comes first"


def report_of(runs: tuple[RunReport, ...]) -> Report:
    return Report("t", "", 7, {}, None, None, runs)


def with_recovery(run: RunReport, recovered_s: float | None) -> RunReport:
    return replace(run, windows=tuple(replace(w, recovered_s=recovered_s, way="mesh") for w in run.windows))


def test_each_fault_has_one_row_for_all_its_windows(tmp_path: Path) -> None:
    runs = tuple(read(sample_runs(tmp_path, quiet=["exactly_once-sever-leader"])))
    cut = [run for run in runs if any(w.fault == "sever" for w in run.windows) and not run.control]
    assert len(cut) == 3
    times = dict(zip([run.run_id for run in cut], (1.0, 5.0, None), strict=True))
    shown = tuple(with_recovery(run, times[run.run_id]) if run.run_id in times else run for run in runs)
    rows = {row.fault: row for row in faults.section(report_of(shown))["rows"]}
    row = rows["sever"]
    mine = [(run, w) for run in shown for w in run.windows if w.fault == "sever"]
    assert len(row.windows) == len(mine)
    assert row.bit == sum(w.bit for _, w in mine)
    assert row.bit < len(mine), "one of them did not bite"
    known = [w.recovered_s for _, w in mine if w.recovered_s is not None]
    assert row.recovered_s_max == max(known) == 5.0
    assert row.recovered_s == median(known)
    assert "mesh" in row.ways


def test_the_time_without_acks_counts_runs_with_one_fault_only(tmp_path: Path) -> None:
    run = next(r for r in read(sample_runs(tmp_path)) if r.windows)
    fault = run.windows[0].fault
    alone = replace(run, unavailable_s_max=3.0)
    other = replace(run.windows[0], fault="another")
    both = replace(run, unavailable_s_max=9.0, windows=(*run.windows, other))
    rows = {row.fault: row for row in faults.section(report_of((alone, both)))["rows"]}
    assert rows[fault].unavailable_s_max == 3.0
    assert rows["another"].unavailable_s_max is None


def test_with_many_faults_they_are_the_rows(tmp_path: Path) -> None:
    runs = [run for run in read(sample_runs(tmp_path)) if not run.control]
    few = matrix.section(report_of(tuple(runs)))
    assert few["corner"] == "Delivery mode"
    assert len(few["rows"]) == len(few["columns"]) == 3
    many = [replace(run, fault=f"{run.fault}-{n}") for run in runs for n in range(3)]
    turned = matrix.section(report_of(tuple(many)))
    assert turned["corner"] == "Fault"
    assert turned["columns"] == ["at-most-once", "at-least-once", "exactly-once"]
    assert len(turned["rows"]) == 9
    assert all(len(cells) == 3 and None not in cells for _, cells in turned["rows"])


def test_runs_of_several_versions_have_rows_of_their_own(tmp_path: Path) -> None:
    runs = [run for run in read(sample_runs(tmp_path)) if not run.control]
    older = [replace(run, versions={"kafka": "3.9.2", "confluent-kafka": "2.10.1"}) for run in runs]
    rows = dict(matrix.section(report_of((*runs, *older)))["rows"])
    assert len(rows) == 6
    (cell, *_) = rows["exactly-once, Kafka 3.9.2, confluent-kafka 2.10.1"]
    assert [run.software for _, run in cell.runs] == ["Kafka 3.9.2, confluent-kafka 2.10.1"]
