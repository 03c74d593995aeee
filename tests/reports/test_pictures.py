"""Pictures of runs: which runs of a report have them, what they say in words, and why some have none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.ledger.rundir import RunDir, read_json, write_json
from reports import pictures
from reports.build import build
from reports.model import RunReport, read_runs
from reports.picture_tables import lag_rows, leader_rows, member_rows
from tests.reports.conftest import HOSTILE
from tests.reports.sample import sample_runs
from tests.reports.sample_pictures import MESSAGES, give_pictures
from tests.reports.test_build import Page

BROKEN = "at_least_once-kill-leader"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunReport, ...]:
    """39 sample runs with pictures, three of which are not as promised."""
    made = sample_runs(tmp_path_factory.mktemp("pictured"), copies=3, broken=[BROKEN])
    for run in made:
        give_pictures(run)
    return read_runs(made)


def page_of(run: RunDir, folder: Path) -> Page:
    out = build(
        [run], folder / "r.html", title="t", command="", seed=None, versions={}, started=None, seconds=None
    )
    return Page(out.read_text(encoding="utf-8"))


def one(root: Path, name: str = BROKEN) -> RunDir:
    return next(run for run in sample_runs(root, broken=[BROKEN]) if run.path.parent.name == name)


# --- which runs have pictures ---------------------------------------------------------------------


def test_a_report_on_few_runs_has_the_pictures_of_each(runs: tuple[RunReport, ...]) -> None:
    few = pictures.of_runs(runs[: pictures.FEW])
    assert [bool(drawn.embedded) for drawn in few] == [True] * pictures.FEW


def test_a_larger_report_has_those_of_runs_that_are_not_as_promised(runs: tuple[RunReport, ...]) -> None:
    drawn = pictures.of_runs(runs)
    shown = [run.scenario for run, one in zip(runs, drawn, strict=True) if one.embedded]
    assert shown == [BROKEN] * 3
    assert {one.missing for one in drawn if not one.embedded} == {pictures.LEFT_OUT}


def test_pictures_of_a_larger_report_are_bounded(runs: tuple[RunReport, ...]) -> None:
    size = len(pictures.of_run(next(run for run in runs if run.scenario == BROKEN)).embedded)
    drawn = pictures.of_runs(runs, 2 * size)
    assert sum(bool(one.embedded) for one in drawn) == 1, "findings count, too"
    assert sum(len(one.embedded) for one in drawn) <= 2 * size


def test_what_is_left_out_is_said_with_the_command_that_shows_it(tmp_path: Path) -> None:
    many = sample_runs(tmp_path / "runs", copies=2)
    for run in many:
        give_pictures(run)
    out = build(
        many, tmp_path / "r.html", title="t", command="", seed=None, versions={}, started=None, seconds=None
    )
    text = "".join(Page(out.read_text(encoding="utf-8")).text)
    name = f"runs/{many[0].path.parent.name}/{many[0].path.name}"
    assert f"To see them: ./onceproof report {name}" in text


# --- what they say --------------------------------------------------------------------------------


def test_pictures_are_there_as_tables_too(tmp_path: Path) -> None:
    run = one(tmp_path)
    give_pictures(run)
    page = page_of(run, tmp_path)
    text = re.sub(r"\s+", " ", " ".join(page.text))
    opened_s = read_json(run.reconciled, "")["coverage"]["windows"][0]["open_s"]
    assert "2 moves; 2 of 3 in sync at least; broker-1 from 600 ms" in text
    assert f"no leader from {opened_s + 1:.1f} s; broker-2 from {opened_s + 3:.1f} s" in text
    assert "2 changes; 0, 1 from 1.3 s; nothing from" in text
    assert re.search(r"lost 5, \d+ dots", text)
    assert re.search(r"9\d\d records at \d", text)
    kinds = [a["data-kind"] for _, a in page.elements if "data-kind" in a]
    assert kinds == ["rates", "latency", "leaders", "messages", "members", "lag"]


def test_what_lies_around_a_finding_is_with_it(tmp_path: Path) -> None:
    run = one(tmp_path)
    give_pictures(run)
    text = re.sub(r"\s+", " ", " ".join(page_of(run, tmp_path).text))
    assert "producer-0.1-9002 this one" in text
    assert "Broker logs within 2 s" in text
    assert "WARN [ReplicaManager broker=2] Shrinking ISR" in text
    assert "Records and broker logs around 0.1-" in text


def test_a_finding_without_a_message_has_its_surroundings_too(tmp_path: Path) -> None:
    run = one(tmp_path)
    give_pictures(run)
    stored = read_json(run.reconciled, "")
    write_json(run.reconciled, {**stored, "findings": [{**f, "messages": []} for f in stored["findings"]]})
    assert "Records and broker logs around it" in "".join(page_of(run, tmp_path).text)


@pytest.mark.parametrize(
    ("logs", "sentence"),
    [
        ("there", "The brokers concerned logged nothing within 2 s of it."),
        ("packed", "packed in logs.tar.gz"),
        ("absent", "the run folder has none"),
    ],
)
def test_without_log_lines_the_reason_is_there(tmp_path: Path, logs: str, sentence: str) -> None:
    run = one(tmp_path)
    give_pictures(run)
    stored = read_json(run.pictures, "")
    write_json(
        run.pictures,
        {**stored, "logs": logs, "findings": [{**f, "log_lines": []} for f in stored["findings"]]},
    )
    assert sentence in re.sub(r"\s+", " ", "".join(page_of(run, tmp_path).text))


def test_many_moves_are_cut_in_the_table() -> None:
    states = [[float(n), f"b{n % 2}", ["b0"]] for n in range(9)]
    (row,) = leader_rows(
        {"leaders": [{"topic": 0, "partition": 4, "replicas": ["b0", "b1"], "states": states}]}
    )
    assert (row["partition"], row["moves"], row["least"], row["of"]) == ("4", 8, 1, 2)
    assert row["leaders"].endswith("; and 3 more")


def test_a_change_of_the_in_sync_set_alone_is_no_move() -> None:
    states = [[0.0, "b0", ["b0", "b1"]], [1.0, "b0", ["b0"]]]
    (row,) = leader_rows({"topics": ["a", "b"], "leaders": [{"topic": 1, "partition": 4, "states": states}]})
    assert (row["partition"], row["moves"], row["least"]) == ("1/4", 0, 1)


def test_absent_parts_are_no_rows() -> None:
    stored: dict[str, Any] = {"version": 1, "lag": None}
    assert (leader_rows(stored), member_rows(stored), lag_rows(stored)) == ([], [], [])


# --- none, damaged, hostile -----------------------------------------------------------------------


def test_without_pictures_the_reason_is_there(tmp_path: Path) -> None:
    run = one(tmp_path)
    assert "there is no pictures.json: ./onceproof reconcile makes one" in "".join(
        page_of(run, tmp_path).text
    )
    write_json(run.pictures, {"version": 1, "error": "ZeroDivisionError: by chance"})
    assert "they could not be made: ZeroDivisionError: by chance" in "".join(page_of(run, tmp_path).text)
    write_json(run.pictures, {"version": 7})
    text = "".join(page_of(run, tmp_path).text)
    assert "pictures.json: not what reconciling writes: version is 7" in text
    assert "VIOLATED" in text, "the verdict does not depend on them"


def test_a_run_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    (run,) = read_runs([one(tmp_path)])
    assert pictures.of_run(replace(run, error="damaged")).missing == ""


def test_hostile_names_stay_text_and_end_no_script(tmp_path: Path) -> None:
    run = one(tmp_path)
    give_pictures(run, HOSTILE)
    page = page_of(run, tmp_path)
    assert not page.having("img")
    assert [a.get("class") for a in page.having("script")] == [None, "pictures", None]
    assert page.open == []
    assert HOSTILE in "".join(page.text)


def test_the_embedded_numbers_are_small_and_whole(tmp_path: Path) -> None:
    run = one(tmp_path)
    give_pictures(run, dots=4_000)
    (report,) = read_runs([run])
    drawn = pictures.of_run(report)
    embedded = json.loads(drawn.embedded)
    stored = read_json(run.pictures, "")["messages"]
    assert len(drawn.embedded) < 60_000
    times = [embedded["dots"]["first"]]
    for step in embedded["dots"]["step"][1:]:
        times.append(times[-1] + step)
    assert times == stored["t_ms"]
    assert embedded["dots"]["fate"] == stored["fate"]
    assert all(
        (ms is None) == (near is None) and (ms is None or abs(near - ms) <= 0.06 * ms)
        for ms, near in zip(stored["ack_ms"], embedded["dots"]["ack"], strict=True)
    )
    assert drawn.sampled == 4_000 > MESSAGES
