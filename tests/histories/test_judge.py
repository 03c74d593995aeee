"""Histories of other tools: every literal case in one Spark session, bad input, the command line."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import cli
from harness.contracts import Mode
from harness.histories.judge import Judged, judge_histories
from harness.histories.parse import HistoryError, read_history
from harness.reconcile.find.cycles import LIMIT, TooManyEdges, components, cycles
from tests.histories.cases import BAD, CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Judged]:
    root = tmp_path_factory.mktemp("histories")
    together: dict[frozenset[str], list[str]] = defaultdict(list)
    for name, case in CASES.items():
        (root / f"{name}.jsonl").write_text(case.text(), encoding="utf-8")
        together[case.options].append(name)
    found: dict[str, Judged] = {}
    for options, names in together.items():
        histories = [read_history(root / f"{name}.jsonl") for name in names]
        given: dict[str, Any] = dict.fromkeys(options, True)
        found |= dict(zip(names, judge_histories(histories, spark, Mode.EXACTLY_ONCE, **given), strict=True))
    return found


@pytest.mark.parametrize("name", CASES)
def test_exactly_what_is_there_is_found(name: str, judged: Mapping[str, Judged]) -> None:
    result = judged[name].to_json()
    found = {
        (one["anomaly"], one["partition"], one["scope"], tuple(one["messages"]), tuple(one["events"]))
        for one in result["findings"]
    }
    assert found == CASES[name].found
    assert len(result["findings"]) == len(found)
    assert result["verdict"] == CASES[name].verdict


def test_findings_have_offsets_and_coverage_is_counted(judged: Mapping[str, Judged]) -> None:
    duplicated = judged["duplicated"].to_json()
    assert duplicated["findings"][0]["offsets"] == [0, 4]
    assert duplicated["coverage"]["compared"]["duplicated"] == 4
    assert judged["read of a message without a send"].coverage["never_sent"] == 1
    jump = next(f for f in judged["skipped between"].findings if f["anomaly"] == "skipped")
    assert jump["offsets"] == [0, 3, 1, 2]


@pytest.mark.usefixtures("spark")
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for name in ("clean", "reordered between", "nothing completed"):
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text(CASES[name].text(), encoding="utf-8")
    clean, reordered, nothing = map(str, files)
    assert cli.main(["judge", "--json", clean, reordered, nothing]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["verdict"] for line in lines] == ["HELD", "VIOLATED", "INCONCLUSIVE"]
    assert cli.main(["judge", "--json", clean, nothing]) == 3
    # At-least-once with several requests in flight allows it.
    assert cli.main(["judge", "--guarantee", "at-least-once", reordered]) == 0
    assert "HELD" in capsys.readouterr().out.splitlines()[-2]


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_by_file_and_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = BAD[name]
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HistoryError) as error:
        read_history(path)
    assert f"{path}{message}" in str(error.value)
    assert cli.main(["judge", "--json", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["judge", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_cycles_are_the_shortest_and_one_a_component() -> None:
    ring = [(1, 2), (2, 3), (3, 4), (4, 1), (3, 1)]
    assert list(cycles(ring)) == [[1, 2, 3]]
    assert list(cycles(ring, must_use=[(4, 1)])) == [[1, 2, 3, 4]]
    assert list(cycles([*ring, (8, 9), (9, 8)])) == [[1, 2, 3], [8, 9]]
    assert list(cycles([(1, 2), (2, 3)])) == []
    assert list(cycles([(1, 2), (2, 1), (5, 6)], must_use=[(5, 6)])) == []


def test_too_many_edges_are_not_searched() -> None:
    with pytest.raises(TooManyEdges, match="not looked for"):
        components([(1, 2)] * (LIMIT + 1))
