"""`trend`: one line when nothing is new, the findings and changes otherwise, JSON, and bad input."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.trends.row import Row
from harness.trends.store import FOLDER, StoreFile
from tests.trends.histories import noisy, quiet_nights, run_of, violated

Capture = pytest.CaptureFixture[str]


def runs_with(tmp_path: Path, rows: Iterable[Row]) -> Path:
    file = StoreFile(tmp_path / FOLDER)
    for row in rows:
        file.append(row)
    return tmp_path


def trend(capsys: Capture, *words: str | Path) -> list[str]:
    assert main(["trend", *map(str, words)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def test_nothing_new_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    rows = quiet_nights()
    rows[0], rows[-1] = violated(rows[0]), violated(rows[-1])
    (line,) = trend(capsys, "--runs", runs_with(tmp_path, rows))
    assert line.startswith("Nothing new tonight: n10 (2026-01-10, 6 runs), 1 known finding,")
    assert "10 sessions since 2025-12-31" in line


def test_new_gone_known_and_changed_are_listed_and_the_rest_is_counted(
    tmp_path: Path, capsys: Capture
) -> None:
    chance = random.Random(1)
    rows = [noisy(row, chance, 2.0 if row.session == "n10" else 1.0) for row in quiet_nights()]
    rows[-1] = violated(rows[-1], "lost")
    rows[-2], rows[0] = violated(rows[-2], "duplicated"), violated(rows[0], "duplicated")
    rows[1] = violated(rows[1], "corrupted")
    rows[2] = violated(replace(rows[2], client="java"))
    runs = runs_with(tmp_path, rows)
    lines = trend(capsys, "--runs", runs)
    kinds = [line.split()[0] for line in lines[1:-1] if not line.startswith(" ")]
    assert kinds == ["new", "gone", "changed", "changed", "known"]
    assert lines[1].startswith("new      lost, fault kill, client confluent: 1 of 6")
    assert lines[2].strip() == str(runs / rows[-1].run)
    assert "1 known finding, 1 earlier not asked for" in lines[-1]


def test_the_first_session_has_nothing_to_compare_with(tmp_path: Path, capsys: Capture) -> None:
    (line,) = trend(capsys, "--runs", runs_with(tmp_path, [run_of(0)]))
    assert "no session before it" in line


def test_json_has_all_of_it(tmp_path: Path, capsys: Capture) -> None:
    rows = quiet_nights()
    rows[-1] = violated(rows[-1])
    runs = runs_with(tmp_path, rows)
    data = json.loads("".join(trend(capsys, "--store", runs / FOLDER, "--json", "--days", "3")))
    assert data["baseline_sessions"] == ["n7", "n8", "n9"]
    (group,) = data["groups"]
    assert (group["anomaly"], group["state"], group["run_dirs"]) == ("lost", "new", [rows[-1].run])
    assert (group["tonight"]["found"], group["before"]["runs"]) == (1, 18)
    assert len(data["series"]) == 4


def test_hostile_texts_reach_no_terminal(tmp_path: Path, capsys: Capture) -> None:
    rows = [*quiet_nights(), violated(run_of(10, 90, client="x\x1b[2J\u202e", faults=("kill\r\nnew",)))]
    lines = trend(capsys, "--runs", runs_with(tmp_path, rows))
    assert "client x\\x1b[2J\\u202e" in lines[1]
    assert not any(char in "".join(lines) for char in "\x1b\r\u202e")


def test_damaged_lines_are_named_and_the_others_compared(tmp_path: Path, capsys: Capture) -> None:
    runs = runs_with(tmp_path, quiet_nights())
    (runs / FOLDER / "strange\x1b.jsonl").write_text('{"schema": 1}\n')
    assert main(["trend", "--runs", str(runs)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Nothing new tonight")
    (line,) = captured.err.splitlines()
    assert "strange\\x1b.jsonl, line 1" in line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--runs", "{}/none"], "no store of trends"),
        (["--store", "{}/file"], "no store of trends"),
        (["--store", "{}/empty"], "no runs are in the store"),
        (["--runs", "{}", "--against", "3.9.9"], "--against 3.9.9: neither"),
        (["--runs", "{}", "--against", "4.3.1"], "have this version"),
        (["--runs", "{}", "--days", "0"], "--days 0"),
        (["--runs", "{}", "--days", "nan"], "--days nan"),
    ],
)
def test_bad_input_is_one_line(words: list[str], says: str, tmp_path: Path, capsys: Capture) -> None:
    runs_with(tmp_path, quiet_nights(2))
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    assert main(["trend", *(word.format(tmp_path) for word in words)]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""
