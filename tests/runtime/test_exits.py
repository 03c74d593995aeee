"""Exit codes: 1 is only ever a verdict; every error is one line on stderr. TRUST R1."""

from __future__ import annotations

import argparse
import errno
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import cli, spark_submit
from harness.commands import doctor
from harness.errors import NoRoom, SetupError
from harness.runtime import exits

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"onceproof: internal error: (.*) \(tests/runtime/test_exits\.py:\d+\); the trace is in (\S+); please report it\n"
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))


def ended_with(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = lambda: None
) -> int:
    def command(args: argparse.Namespace) -> int:
        before()
        if error is not None:
            raise error
        return 0

    monkeypatch.setattr(doctor, "run", command)
    return cli.main(["doctor"])


def test_an_unforeseen_error_is_one_line_and_a_trace_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert ended_with(RuntimeError("bug\nin\x1b[31m two lines"), monkeypatch) == 70
    shown = capsys.readouterr()
    assert shown.out == ""
    said = LINE.fullmatch(shown.err)
    assert said, shown.err
    assert said[1] == "RuntimeError: bug"
    trace = Path(said[2])
    assert trace.parent == tmp_path / "cache" / "logs"
    assert trace.stat().st_mode & 0o077 == 0
    text = trace.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text
    assert "in command" in text


def test_the_trace_goes_to_the_temporary_folder_where_the_cache_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ended_with(KeyError("gone"), monkeypatch) == 70
    said = LINE.fullmatch(capsys.readouterr().err)
    assert said
    assert Path(said[2]).parent == tmp_path


def test_an_error_in_a_thread_is_not_a_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose_a_thread() -> None:
        def work() -> None:
            raise ValueError("in a thread")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    hook = threading.excepthook
    assert ended_with(None, monkeypatch, before=lose_a_thread) == 70
    said = LINE.fullmatch(capsys.readouterr().err)
    assert said
    assert said[1] == "ValueError: in a thread"
    assert threading.excepthook is hook
    assert ended_with(None, monkeypatch) == 0


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SetupError("no Java: install it"), 2, "no Java: install it"),
        (NoRoom("/x: no space left"), 2, "/x: no space left"),
        (PermissionError(errno.EACCES, "Permission denied", "/x/y"), 2, "/x/y: Permission denied"),
        (OSError(errno.EROFS, "Read-only file system", "/x/y"), 2, "/x/y: Read-only file system"),
        (OSError(errno.EMFILE, "Too many open files", "/x"), 2, "/x: Too many open files; raise the limit of open files: ulimit -n 4096"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)  # fmt: skip
def test_an_error_that_users_can_act_on_has_no_trace(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert ended_with(error, monkeypatch) == code
    assert capsys.readouterr().err == f"onceproof: {said}\n"
    assert not (tmp_path / "cache").exists()


# TRUST R3
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_folder_and_the_remedy(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert ended_with(OSError(number, os.strerror(number), str(tmp_path / "not" / "there")), monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.startswith("onceproof: /")
    assert re.search(
        r": no space left on device \([\d.]+ MiB free\); free some disk space or choose another", said
    )


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "Broken pipe"), SystemExit(1), SystemExit("text")]
)
def test_nothing_but_a_verdict_ends_with_0_or_1(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken pipe to a broker or to Spark's JVM is not a closed stdout."""
    assert ended_with(error, monkeypatch) == 70


class JavaError(Exception):
    """An error like py4j's: its text is the trace of Java, over many lines."""

    __module__ = "py4j.protocol"

    def __init__(self, said: str) -> None:
        super().__init__(f"An error occurred while calling o1.collect.\n: {said}\n\tat org.apache.spark…\n")
        self.java_exception = self
        self._said = said

    def toString(self) -> str:  # noqa: N802  as Java calls it
        return f"{self._said}\n\tat org.apache.spark…"


def test_an_error_of_spark_is_its_first_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_with(JavaError("org.apache.spark.SparkException: Job aborted"), monkeypatch) == 70
    said = LINE.fullmatch(capsys.readouterr().err)
    assert said
    assert said[1] == "JavaError: org.apache.spark.SparkException: Job aborted"
    assert "An error occurred while calling" in Path(said[2]).read_text(encoding="utf-8")


# TRUST R3
def test_a_full_scratch_disk_of_spark_is_not_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_with(JavaError("java.io.IOException: No space left on device"), monkeypatch) == 2
    assert "no space left on device" in capsys.readouterr().err


def run_cli(*words: str, stdout: int | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


def test_output_that_cannot_be_written_is_not_a_success() -> None:
    with Path("/dev/full").open("w") as full:
        ended = run_cli("faults", stdout=full.fileno())
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("onceproof: ")
    assert len(ended.stderr.splitlines()) == 1, ended.stderr


def test_a_closed_stdout_is_no_error_and_no_verdict() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = run_cli("faults", stdout=writing)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (exits.STDOUT_CLOSED, "")


def test_running_threads_do_not_change_the_code() -> None:
    code = (
        "import atexit, threading, time\nfrom harness.runtime import exits\natexit.register(print, 'cleaned up')\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\nprint('done')\nexits.leave(3)"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (3, "done\ncleaned up\n"), ended.stderr


def test_the_entry_for_spark_submit_has_the_same_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(words: object) -> int:
        raise RuntimeError("bug")

    monkeypatch.setattr(spark_submit, "_submitted", crash)
    assert spark_submit.main(["x"]) == 70
    assert "internal error: RuntimeError: bug" in capsys.readouterr().err


def test_the_table_in_the_docs_has_every_code() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    known = {value for name, value in vars(exits).items() if name.isupper() and not name.startswith("_")}
    assert listed == known
