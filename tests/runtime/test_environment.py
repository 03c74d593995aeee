"""The process that commands run in: its limits, its cache folder, and the folders of its options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.commands import tox
from harness.errors import SetupError
from harness.provision import cache_dir
from harness.runtime import environment

ROOT = Path(__file__).parents[2]
LIMITED = """
import resource, subprocess, sys
soft, hard = map(int, sys.argv[1:3])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
sys.exit(subprocess.run([sys.executable, "-P", *sys.argv[3:]]).returncode)
"""


def limited(soft: int, hard: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process with these limits of open files."""
    return subprocess.run(
        [sys.executable, "-P", "-c", LIMITED, str(soft), str(hard), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# TRUST R5
def test_the_limit_of_open_files_is_raised_up_to_the_hard_one() -> None:
    code = (
        "import resource, harness.commands.doctor as doctor\nfrom harness import cli; from harness.runtime import environment\n"
        "doctor.run = lambda args: print(*resource.getrlimit(resource.RLIMIT_NOFILE)) or 0\n"
        "cli.main(['doctor'])\nenvironment.need_open_files()"
    )
    ended = limited(256, 2048, "-c", code)
    assert (ended.returncode, ended.stdout) == (0, "2048 2048\n"), ended.stderr


# TRUST R5
@pytest.mark.parametrize("command", ["prove", "judge", "reconcile"])
def test_a_hard_limit_that_is_too_low_is_a_one_line_error(command: str, tmp_path: Path) -> None:
    from harness.ledger.literal_run import LiteralRun

    words = {"prove": ["--quick", "--runs", str(tmp_path)]}.get(command, [])
    if command == "judge":
        (tmp_path / "history").write_text("")
        words = [str(tmp_path / "history")]
    if command == "reconcile":
        run = LiteralRun(tmp_path)
        run.session(1)
        words = [str(run.finish().path)]
    ended = limited(256, 256, "-m", "harness.cli", command, *words)
    assert ended.returncode == 2, ended.stderr
    line = ended.stderr.splitlines()[-1]
    assert line.startswith(
        "onceproof: the hard limit of open files is 256 (ulimit -Hn), and at least 1024 are needed;"
    )
    assert "Traceback" not in ended.stderr


def test_the_doctor_reports_the_limit_of_open_files() -> None:
    ended = limited(256, 256, "-m", "harness.cli", "doctor")
    assert ended.returncode == 2
    assert "prove cannot run here: open files" in ended.stdout


# TRUST R8
@pytest.mark.parametrize("home", [None, "", "/", "//", "relative"])
def test_without_a_home_there_is_no_cache_at_the_root(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ONCEPROOF_CACHE", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/to/nothing")
    if home is not None:
        monkeypatch.setenv("HOME", home)
    with pytest.raises(SetupError, match="set ONCEPROOF_CACHE"):
        cache_dir()


def test_a_relative_cache_of_xdg_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ONCEPROOF_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "onceproof"


# TRUST R4
@pytest.mark.parametrize("name", ["a:b", "a=b"])
def test_a_cache_that_java_cannot_use_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / name))
    with pytest.raises(SetupError, match="Java cannot use a folder with"):
        cache_dir()


def test_every_command_has_the_same_relative_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONCEPROOF_CACHE", "cache")
    environment.prepare()
    monkeypatch.chdir("/")
    assert cache_dir() == tmp_path / "cache"


# TRUST R8
@pytest.mark.parametrize(
    ("words", "asks"),
    [
        (["--version"], True),
        (["-l"], True),
        (["-e", "unit", "--help"], True),
        (["list"], True),
        (["config", "-e", "unit"], True),
        ([], False),
        (["-e", "unit"], False),
        (["-e", "unit", "--", "--help"], False),
        (["-e", "list"], False),
    ],
)
def test_tox_installs_nothing_if_it_only_prints(words: list[str], asks: bool) -> None:
    assert tox.only_asks(words) is asks


# TRUST R8
@pytest.mark.parametrize("word", ["--version", "-l"])
def test_printing_by_tox_creates_no_cache(word: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "tox", word],
        env={**os.environ, "PYTHONPATH": str(ROOT), "ONCEPROOF_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("locale", ["C", "POSIX", ""])
def test_java_gets_a_utf_8_locale(locale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LC_CTYPE", raising=False)
    monkeypatch.delenv("LANG", raising=False)
    monkeypatch.setenv("LC_ALL", locale)
    environment.prepare()
    assert os.environ["LC_ALL"] == "C.UTF-8"


def test_a_python_that_is_too_old_is_a_one_line_error() -> None:
    code = "import sys; sys.version_info = (3, 10, 2); import harness"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("onceproof: Python ")
    assert ended.stderr.endswith(" is too old; start ./onceproof, or use Python 3.11 to 3.13\n")
    assert len(ended.stderr.splitlines()) == 1
