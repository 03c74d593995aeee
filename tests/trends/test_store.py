"""The store: rows come back as they were, two writers lose nothing, and damaged or hostile lines hide no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.trends.row import Row
from harness.trends.store import StoreFile, read_rows, read_store
from tests.trends.histories import quiet_nights, run_of, violated

ROOT = Path(__file__).parents[2]


def stored(folder: Path, *rows: Row) -> Path:
    """Write rows and return their file."""
    file = StoreFile(folder)
    for row in rows:
        file.append(row)
    (path,) = folder.iterdir()
    return path


def changed(path: Path, line: int, **values: Any) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[line] = json.dumps(json.loads(lines[line]) | values)
    path.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")


def test_rows_come_back_as_they_were_in_order_of_their_start(tmp_path: Path) -> None:
    rows = [violated(run_of(1)), replace(run_of(0), unavailable_s=None, acked=None, recovery_s=())]
    stored(tmp_path / "store", *rows)
    assert read_rows(tmp_path / "store") == rows[::-1]


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.trends.writers", str(tmp_path / "store")]
    writers = [subprocess.Popen([*command, name, "200"], cwd=ROOT) for name in ("one", "two")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = read_store(tmp_path / "store")
    assert found.unreadable == ()
    assert {row.run for row in found.rows} == {f"{name}/{n}" for name in ("one", "two") for n in range(200)}
    assert len(list((tmp_path / "store").iterdir())) == 2


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    path = stored(tmp_path, run_of(0), run_of(1))
    whole = path.read_bytes()
    for cut in (1, 40, len(whole) // 2 - 20):
        path.write_bytes(whole[:-cut])
        found = read_store(tmp_path)
        assert [row.session for row in found.rows] == ["n0"]
        assert found.unreadable == ()


def test_a_write_without_room_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StoreFile(tmp_path)
    file.append(run_of(0))
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:100]))
    with pytest.raises(OSError, match="no room"):
        file.append(run_of(1))
    monkeypatch.undo()
    file.append(run_of(2))
    assert [row.session for row in read_rows(tmp_path)] == ["n0", "n2"]
    assert read_store(tmp_path).unreadable == ()


def test_a_run_that_was_judged_twice_counts_once(tmp_path: Path) -> None:
    stored(tmp_path, run_of(0), violated(run_of(0)), replace(run_of(0), session="another"))
    assert len(read_rows(tmp_path)) == 2


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "path": ({"run": "../../etc/passwd"}, "run is"),
    "hidden folder": ({"run": "a/.."}, "run is"),
    "script": ({"run": "javascript:alert(1)/x"}, "run is"),
    "type": ({"verdict": 7}, "verdict is 7"),
    "number as text": ({"recovery_s": ["4"]}, "recovery_s[0] is '4'"),
    "huge number": ({"throughput_per_s": 1e300}, "throughput_per_s is"),
    "truth": ({"canary": "no"}, "canary is"),
    "date": ({"started": "soon"}, "started is"),
    "long text": ({"scenario": "x" * 5000}, "scenario is"),
    "lists that do not fit": ({"anomaly_counts": [1, 2, 3]}, "anomaly_faults is"),
    "later schema": ({"schema": 2}, "schema is 2"),
}


@pytest.mark.parametrize(("values", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_is_left_out_and_named(tmp_path: Path, values: dict[str, Any], expected: str) -> None:
    path = stored(tmp_path, violated(run_of(0)), run_of(1))
    changed(path, 0, **values)
    found = read_store(tmp_path)
    assert [row.session for row in found.rows] == ["n1"]
    (line,) = found.unreadable
    assert f"{path}, line 1: {expected}" in line
    assert len(line) < 400


@pytest.mark.parametrize("text", ["{", "[1]", "{}", "[" * 100_000, "\x00", '{"schema": 1, "schema": 1}'])
def test_lines_that_are_no_rows_are_left_out(tmp_path: Path, text: str) -> None:
    path = stored(tmp_path, run_of(0))
    path.write_text(f"{text}\n{path.read_text()}{text}\n")
    found = read_store(tmp_path)
    assert len(found.rows) == 1
    assert "and 1 more line" in found.unreadable[0]


def test_control_characters_in_texts_come_back_and_do_not_break_lines(tmp_path: Path) -> None:
    row = replace(run_of(0), machine="a\nb\x1b[2J\u202e\u2028</script>", targets=("x\r\n",))
    path = stored(tmp_path, row)
    assert path.read_bytes().count(b"\n") == 1
    assert read_rows(tmp_path) == [row]


def test_what_is_no_plain_file_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    path = stored(folder, run_of(0))
    (folder / "link.jsonl").symlink_to(path)
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")  # reading it would wait for ever
    found = read_store(folder)
    assert len(found.rows) == 1
    assert len(found.unreadable) == 3


def test_a_store_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("none", "file"):
        with pytest.raises(UsageError, match="no store of trends"):
            read_rows(tmp_path / place)


def test_every_row_has_every_column(tmp_path: Path) -> None:
    path = stored(tmp_path, violated(run_of(0)), replace(run_of(1), unavailable_s=None))
    first, second = map(json.loads, path.read_text().splitlines())
    assert list(first) == list(second) == list(asdict(run_of(0)))


# --- other readers ------------------------------------------------------------------------------


def documented(language: str, runs: Path) -> str:
    """Return the first example in this language of docs/trends.md, for another folder of runs."""
    text = (ROOT / "docs/trends.md").read_text(encoding="utf-8")
    return (
        text.partition(f"```{language}\n")[2].partition("```")[0].replace("runs/.trends", f"{runs}/.trends")
    )


def two_writers(runs: Path) -> None:
    """Write quiet nights in one file, a canary and two violated runs in another."""
    first, second = StoreFile(runs / ".trends"), StoreFile(runs / ".trends")
    for row in quiet_nights(3):
        first.append(row)
    for row in (violated(run_of(4)), violated(run_of(5)), replace(violated(run_of(6)), canary=True)):
        second.append(row)


def test_duckdb_reads_it(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    two_writers(tmp_path)
    assert duckdb.sql(documented("sql", tmp_path)).fetchall() == [("4.3.1", "kill", "lost", 2)]
    described = duckdb.sql(f"DESCRIBE FROM read_json_auto('{tmp_path}/.trends/*.jsonl')").fetchall()
    types = {name: kind for name, kind, *_ in described}
    assert {types[name] for name in ("started_s", "unavailable_s", "throughput_per_s")} == {"DOUBLE"}
    assert types["recovery_s"] == "DOUBLE[]"
    assert (types["canary"], types["seed"], types["verdict"]) == ("BOOLEAN", "BIGINT", "VARCHAR")


def test_pandas_reads_it(tmp_path: Path) -> None:
    import pandas

    two_writers(tmp_path)
    names: dict[str, Any] = {"pandas": pandas, "Path": Path}
    exec(documented("python", tmp_path), names)
    frame = names["frame"]
    assert len(frame) == 27
    assert set(frame[frame.verdict == "VIOLATED"].session) == {"n4", "n5", "n6"}
    assert (str(frame.throughput_per_s.dtype), str(frame.canary.dtype)) == ("float64", "bool")


@pytest.mark.spark
def test_spark_reads_it(tmp_path: Path, spark: Any) -> None:
    two_writers(tmp_path)
    frame = spark.read.json(str(tmp_path / ".trends"))
    assert frame.count() == 27
    assert dict(frame.dtypes)["recovery_s"] == "array<double>"
    assert [tuple(row) for row in frame.selectExpr("explode(anomalies)").collect()] == [("lost",)] * 3
