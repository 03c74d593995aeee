"""TRUST R9: one bad run among good ones is named, the others get their verdicts, and only a violation outweighs it in the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.cli import main
from harness.ledger.rundir import RunDir, read_json, write_json
from harness.reconcile import run_locations
from harness.reconcile.spark.package import make_package
from harness.spark_submit import judge_runs
from reports.model import RunReport
from reports.summary import closing, exit_code
from tests.strangers.folders import broken, clean, judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Capture = pytest.CaptureFixture[str]
CODE = "x', reflect('java.lang.System','load','/tmp/evil.so'), 'x"


def bad(root: Path) -> RunDir:
    run = judged(clean(root))
    write_json(run.manifest, {**read_json(run.manifest, ""), "topics": "orders"})
    return run


# --- report ---


def test_the_report_shows_the_good_runs_and_names_the_bad_one(tmp_path: Path, capsys: Capture) -> None:
    good, wrong = judged(clean(tmp_path / "a")), bad(tmp_path / "b")
    out = tmp_path / "report.html"
    assert main(["report", str(good.path), str(wrong.path), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("1 of 2 runs as promised; 1 cannot be read: clean.\n")
    assert said.err == f"onceproof: {wrong.path}: {RunReport.read(wrong).error}\n"
    rows = json.loads(out.with_suffix(".json").read_text())["runs"]
    assert [(row["verdict"], row["standing"]) for row in rows] == [
        ("HELD", "as promised"), ("UNREADABLE", "cannot be read"),
    ]  # fmt: skip
    assert "manifest.json: not the manifest of a run: topics is" in rows[1]["error"]
    assert "1 run could not be read" in out.read_text()


def test_a_violation_outweighs_a_bad_run_which_outweighs_doubt(tmp_path: Path) -> None:
    unreadable = RunReport.read(bad(tmp_path / "bad"))
    held = RunReport.read(judged(clean(tmp_path / "held")))
    violated = RunReport.read(judged(broken(tmp_path / "violated"), lost=1))
    pending = RunReport.read(clean(tmp_path / "pending"))
    assert [one.verdict for one in (held, violated, pending)] == ["HELD", "VIOLATED", "INCONCLUSIVE"]
    assert exit_code([unreadable]) == exit_code([unreadable, held]) == exit_code([unreadable, pending]) == 2
    assert exit_code([unreadable, violated]) == 1
    assert closing([unreadable]) == "0 of 1 run as promised; 1 cannot be read: clean."


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    run = judged(clean(tmp_path / "a"))
    (tmp_path / "file").write_text("")
    assert main(["report", str(run.path), "--out", str(tmp_path / "file" / "report.html")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "report.html: the report cannot be written (File exists: " in said.err


def test_a_package_in_a_missing_folder_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    assert main(["reconcile", "--package", str(tmp_path / "none" / "x.zip")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "--package" in said.err
    assert make_package(tmp_path / "x.zip").exists()


def test_sealing_alone_goes_on_behind_a_bad_run(tmp_path: Path, capsys: Capture) -> None:
    wrong, good = bad(tmp_path / "b"), clean(tmp_path / "a")
    assert main(["reconcile", "--seal-only", str(wrong.path), str(good.path)]) == 2
    said = capsys.readouterr()
    assert said.out == f"{good.tables}\n"
    assert said.err.count("\n") == 1
    assert "topics is 'orders'" in said.err


# --- reconcile ---


def _rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_reconcile_judges_the_good_runs_and_names_the_bad_ones(
    spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    held, wrong, violated = clean(tmp_path / "a"), bad(tmp_path / "b"), broken(tmp_path / "c")
    copy = tmp_path / "d" / "copy" / "again"
    copy.parent.mkdir(parents=True)
    copy.symlink_to(held.path)  # the same folder by another name is the same run
    texts = [str(run.path) for run in (held, wrong, violated)] + [str(copy)]
    assert judge_runs(texts, spark, as_json=True) == 1
    said = capsys.readouterr()
    rows = _rows(said.out)
    assert [row["verdict"] for row in rows] == ["HELD", "UNREADABLE", "VIOLATED"]
    assert "topics is 'orders'" in rows[1]["error"]
    assert [line for line in said.err.splitlines() if line.startswith("onceproof: ")] == [
        f"onceproof: {wrong.manifest}: not the manifest of a run: topics is 'orders': a list of 1 to 256 values is expected"
    ]
    assert judge_runs(texts, spark, as_json=False) == 1
    table = capsys.readouterr().out
    assert "UNREADABLE" in table
    assert "1 cannot be read" in table


def test_many_runs_are_sealed_by_tasks_and_the_bad_one_is_named(
    spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    runs = [clean(tmp_path, f"clean-{number}") for number in range(run_locations.MANY)]
    write_json(runs[3].manifest, {})
    assert judge_runs([str(tmp_path)], spark, as_json=True) == 2
    said = capsys.readouterr()
    assert sorted(row["verdict"] for row in _rows(said.out)) == ["HELD"] * (len(runs) - 1) + ["UNREADABLE"]
    assert said.err.count("onceproof: ") == 1


# --- sealed tables of a stranger ---


def uploaded(run: RunDir) -> str:
    """Leave a run as `reconcile --seal-only` and an upload without the ledger do."""
    from harness.reconcile.seal.seal import seal

    seal(run)
    for path in run.ledger.iterdir():
        path.unlink()
    run.ledger.rmdir()
    return f"file://{run.path}"


def test_tables_from_elsewhere_are_judged(spark: SparkSession, tmp_path: Path, capsys: Capture) -> None:
    urls = [uploaded(clean(tmp_path / "a")), uploaded(broken(tmp_path / "b"))]
    assert judge_runs(urls, spark, as_json=True) == 1
    assert [row["verdict"] for row in _rows(capsys.readouterr().out)] == ["HELD", "VIOLATED"]


SEALED: dict[str, dict[str, Any]] = {
    "isolation with code": {"group_isolation": CODE},
    "observer with code": {
        "observers": [{"reader": 1, "name": "o", "isolation": CODE, "records": 1, "spans": []}],
    },
    "another run's number": {"run": 5},
    "a number with code": {"run": "5) OR (1"},
    "events a number": {"events": 3},
    "rows a list": {"rows": []},
    "transform with code": {"transform": {"most": CODE, "poison_share": 0.0}},
    "sessions without number": {"sessions": [{}]},
}


@pytest.mark.parametrize("change", SEALED.values(), ids=SEALED)
def test_a_sealed_file_of_a_stranger_is_refused_in_one_line(
    change: dict[str, Any], spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    good, run = clean(tmp_path / "a", "good"), clean(tmp_path / "b")
    url = uploaded(run)
    path = run.tables / "sealed.json"
    write_json(path, {**read_json(path, ""), **change})
    assert judge_runs([url, str(good.path)], spark, as_json=True) == 2
    said = capsys.readouterr()
    assert [row["verdict"] for row in _rows(said.out)] == ["UNREADABLE", "HELD"]
    assert "tables/sealed.json: " in said.err
    assert said.err.count("\n") == 2  # with the line of progress


def test_tables_of_a_stranger_with_impossible_numbers_are_refused(
    spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for number, (table, column) in enumerate((("log", "offset"), ("bounds", "end"), ("deliveries", "t"))):
        run = clean(tmp_path / str(number))
        url = uploaded(run)
        path = next((run.tables / table).glob("*.parquet"))
        rows = pq.read_table(path)
        at = rows.schema.get_field_index(column)
        huge = pc.add(rows[column], pa.scalar(1 << 61, rows.schema.field(column).type))
        pq.write_table(rows.set_column(at, rows.schema.field(column), huge), path)
        good = clean(tmp_path / f"good-{number}", "good")
        assert judge_runs([url, str(good.path)], spark, as_json=True) == 2
        said = capsys.readouterr()
        assert [row["verdict"] for row in _rows(said.out)] == ["UNREADABLE", "HELD"], table
        assert table in said.err


def test_a_link_in_a_folder_that_hadoop_reads_is_refused(
    spark: SparkSession, tmp_path: Path, capsys: Capture
) -> None:
    good, run = clean(tmp_path / "a", "good"), clean(tmp_path / "b")
    url = uploaded(run)
    (run.tables / "log" / "more.parquet").symlink_to("/etc/hostname")
    assert judge_runs([url, str(good.path)], spark, as_json=True) == 2
    assert "more.parquet: a symbolic link" in capsys.readouterr().err
