"""A Spark session in a hostile environment: variables meant for another Spark, odd folders, a Spark that cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.ledger.literal_run import LiteralRun
from harness.runtime import plain_paths

ROOT = Path(__file__).parents[3]
COUNT = "from harness.reconcile.spark import session; print(session.spark().range(3).count())"


def run_python(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.spark
def test_variables_for_another_spark_are_ignored_and_scratch_finds_a_plain_name(tmp_path: Path) -> None:
    """TRUST section 5 (SPARK_HOME, PYSPARK_SUBMIT_ARGS) and R4 (TMPDIR)."""
    odd = tmp_path / "a b, ü's 5%20"
    odd.mkdir()
    ended = run_python(
        "-c",
        COUNT,
        SPARK_HOME=str(tmp_path / "nowhere"),
        PYSPARK_SUBMIT_ARGS="--master spark://192.0.2.1:7077 pyspark-shell",
        SPARK_SUBMIT_OPTS="-Xno-such-option",
        SPARK_DIST_CLASSPATH="/nowhere/*",
        TMPDIR=str(odd),
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "3\n"
    assert sorted(ended.stderr.splitlines()) == [
        "onceproof: PYSPARK_SUBMIT_ARGS is ignored; `reconcile` has --conf NAME=VALUE",
        f"onceproof: Spark cannot use the name of the folder {odd}; its scratch goes to /tmp",
    ]


@pytest.mark.spark
def test_a_spark_that_cannot_start_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    """TRUST R1."""
    run = LiteralRun(tmp_path)
    run.session(1)
    folder = run.finish()
    ended = run_python(
        "-m",
        "harness.cli",
        "reconcile",
        str(folder.path),
        "--memory",
        "1k",
        ONCEPROOF_CACHE=str(tmp_path / "cache"),
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    assert lines[0].startswith("onceproof: Spark did not start: ")
    assert "heap" in lines[0], "with Java's own words"


@pytest.mark.parametrize(
    ("name", "plain"),
    [("runs", True), ("a-b_c.d+e@~", True), ("a b", False), ("ü", False), ("a,b", False), ("a:b", False), ("5%20", False), ("$x", False)],
)  # fmt: skip
def test_plain_names_are_recognised(name: str, plain: bool, tmp_path: Path) -> None:
    assert plain_paths.is_plain(tmp_path / name) is plain
    assert plain_paths.seen_from(tmp_path, tmp_path / name) == (tmp_path / name if plain else Path(name))


def test_no_plain_temporary_folder_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = tmp_path / "ü"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    monkeypatch.setattr(plain_paths, "_USUAL_TEMP_FOLDERS", (str(tmp_path / "nowhere"),))
    with pytest.raises(SetupError, match="TMPDIR="):
        plain_paths.plain_temp_folder()
