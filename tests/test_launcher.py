"""The launcher with a stand-in for the Python environment: no network, nothing is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[1] / "onceproof"

# Answers like uv: `venv` makes a python that prints its arguments, `pip sync` succeeds or not; every call is recorded.
FAKE_UV = """#!/bin/bash
[[ $1 == --version ]] && { echo "uv 0.13.0"; exit; }
echo "$1 $2" >>"$CALLS"
if [[ $1 == venv ]]; then
    place=${!#}; mkdir -p "$place/bin"
    printf '#!/bin/sh\\necho "PYTHONPATH=$PYTHONPATH" "$@"\\n' >"$place/bin/python"; chmod +x "$place/bin/python"
else
    sleep "${SYNC_TAKES_S:-0}"; exit "${SYNC_ENDS:-0}"
fi
"""


class Clone:
    """A copy of the launcher with its own lock file and a uv that only records its calls."""

    def __init__(self, root: Path) -> None:
        self.root = root / "clone"
        self.root.mkdir()
        shutil.copy(LAUNCHER, self.root / "onceproof")
        (self.root / "requirements.lock").write_text("first\n")
        self.calls_file = root / "calls"
        uv = root / "bin" / "uv"
        uv.parent.mkdir()
        uv.write_text(FAKE_UV)
        uv.chmod(0o755)
        (uv.parent / "python3").symlink_to(Path(sys.executable).resolve())  # a shim on the path may be slow
        self.env = {**os.environ, "PATH": f"{uv.parent}:{os.environ['PATH']}", "CALLS": str(self.calls_file)}
        self.env.pop("PYTHONPATH", None)

    def begin(
        self, *arguments: str, by: Path | None = None, cwd: Path | None = None, **env: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(by or self.root / "onceproof"), *arguments],
            cwd=cwd,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(
        self, *arguments: str, by: Path | None = None, cwd: Path | None = None, **env: str
    ) -> tuple[int, str, str]:
        process = self.begin(*arguments, by=by, cwd=cwd, **env)
        out, errors = process.communicate(timeout=30)
        return process.returncode, out.strip(), errors

    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_start_sets_up_and_the_second_only_starts(clone: Clone) -> None:
    code, out, errors = clone.start("doctor", "--json")
    assert (code, out) == (0, f"PYTHONPATH={clone.root} -P -m harness.cli doctor --json"), errors
    assert "setting up the Python environment" in errors
    assert clone.calls() == ["venv --quiet", "pip sync"]
    assert clone.start("doctor") == (0, f"PYTHONPATH={clone.root} -P -m harness.cli doctor", "")
    assert len(clone.calls()) == 2


def test_it_works_from_another_folder_and_through_a_link(clone: Clone, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "once"
    link.parent.mkdir()
    link.symlink_to(clone.root / "onceproof")
    code, out, _ = clone.start("x y", by=link, cwd=link.parent)
    assert (code, out) == (0, f"PYTHONPATH={clone.root} -P -m harness.cli x y")


def test_a_changed_lock_file_is_followed_without_starting_over(clone: Clone) -> None:
    clone.start()
    (clone.root / "requirements.lock").write_text("second\n")
    clone.start()
    assert clone.calls() == ["venv --quiet", "pip sync", "pip sync"]
    stamp = (clone.root / ".venv" / ".onceproof-stamp").read_text()
    assert stamp.split()[0] == hashlib.sha256(b"second\n").hexdigest()


def test_a_failed_set_up_is_reported_and_repeated_from_the_beginning(clone: Clone) -> None:
    code, out, errors = clone.start(SYNC_ENDS="1")
    assert (code, out) == (2, "")
    assert "could not be fetched" in errors
    assert clone.start()[0] == 0
    assert clone.calls() == ["venv --quiet", "pip sync"] * 2


def test_a_killed_set_up_is_repeated(clone: Clone) -> None:
    killed = clone.begin(SYNC_TAKES_S="30")
    while "pip sync" not in clone.calls():
        assert killed.poll() is None
    os.killpg(killed.pid, 9)
    killed.communicate(timeout=10)
    assert not (clone.root / ".venv" / ".onceproof-stamp").exists()
    assert clone.start()[0] == 0
    assert clone.calls() == ["venv --quiet", "pip sync"] * 2


def test_two_starts_at_once_set_up_once(clone: Clone) -> None:
    starts = [clone.begin(SYNC_TAKES_S="0.5") for _ in range(2)]
    outputs = [start.communicate(timeout=30) for start in starts]
    assert [start.returncode for start in starts] == [0, 0], outputs
    assert clone.calls() == ["venv --quiet", "pip sync"]
    assert any("waiting for another start" in errors for _, errors in outputs)


def tools_of(folder: Path) -> Path:
    """Return a folder with only the tools that the launcher itself uses: no Python, no uv, no apt-get."""
    folder.mkdir()
    for name in ("bash", "env", "dirname", "readlink", "sha256sum", "flock", "rm", "mkdir", "cut", "stat"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return folder


def test_a_missing_python_is_a_one_line_error(clone: Clone, tmp_path: Path) -> None:
    code, out, errors = clone.start(PATH=str(tools_of(tmp_path / "tools")))
    assert (code, out) == (2, "")
    assert errors == "onceproof: Python 3.11, 3.12 or 3.13 is missing: install python3\n"


def test_a_python_that_is_too_old_is_skipped(clone: Clone, tmp_path: Path) -> None:
    old = tools_of(tmp_path / "tools") / "python3"
    old.write_text("#!/bin/bash\nexit 1\n")
    old.chmod(0o755)
    assert clone.start(PATH=f"{old.parent}:{clone.env['PATH']}")[0] == 0
    assert clone.start(PATH=str(old.parent))[0] == 0, "the second start needs no Python on the path"


def test_a_missing_venv_module_is_a_one_line_error(clone: Clone, tmp_path: Path) -> None:
    bare = tools_of(tmp_path / "tools") / "python3"
    bare.write_text(
        f'#!/bin/bash\n[[ $2 == *ensurepip* ]] && exit 1\nexec {Path(sys.executable).resolve()} "$@"\n'
    )
    bare.chmod(0o755)
    (clone.root / "requirements-uv.lock").touch()
    # The real interpreter names itself, so the stand-in has to be asked about venv under its own name.
    bare.write_text(f"#!/bin/bash\n[[ $2 == *ensurepip* ]] && exit 1\necho ok {bare}\n")
    code, _, errors = clone.start(PATH=str(bare.parent), ONCEPROOF_CACHE=str(tmp_path / "cache"))
    assert code == 2
    assert "Python's venv is missing: install python3-venv" in errors
    assert len(errors.splitlines()) == 2, errors


def python_that_is(folder: Path, name: str, version: tuple[int, int]) -> Path:
    """Return a stand-in that answers the launcher as a Python of that version would."""
    script = folder / name
    script.write_text(
        f"#!/bin/bash\n[[ $1 == --version ]] && {{ echo Python {version[0]}.{version[1]}; exit; }}\n"
        f"exec {Path(sys.executable).resolve()} -c \"import sys; sys.version_info = {(*version, 0)}; sys.executable = '{script}'; ${{2#*sys; }}\"\n"
    )
    script.chmod(0o755)
    return script


def test_an_old_python_is_named_when_there_is_no_other(clone: Clone, tmp_path: Path) -> None:
    old = python_that_is(tools_of(tmp_path / "tools"), "python3", (3, 10))
    code, out, errors = clone.start(PATH=str(old.parent))
    assert (code, out) == (2, "")
    assert errors.splitlines() == [
        f"onceproof: Python 3.11, 3.12 or 3.13 is missing: install python3 (Python 3.10 at {old} is too old)"
    ]


def test_a_tested_python_is_preferred_to_a_newer_one(clone: Clone, tmp_path: Path) -> None:
    tools = tools_of(tmp_path / "tools")
    newer, tried = (
        python_that_is(tools, name, version)
        for name, version in (("python3", (3, 15)), ("python3.12", (3, 12)))
    )
    (tools / "uv").write_text(
        '#!/bin/bash\n[[ $1 == --version ]] && { echo uv 0.13.0; exit; }\necho "$@" >>"$CALLS"; exit 9\n'
    )
    (tools / "uv").chmod(0o755)
    code, _, errors = clone.start(PATH=str(tools))
    assert code == 2, errors
    assert "newer than" not in errors
    assert f"--python {tried} " in clone.calls()[0]
    tried.unlink()
    code, _, errors = clone.start(PATH=str(tools))
    assert (
        f"onceproof: {newer} is newer than Python 3.13, the newest tested version; using it anyway" in errors
    )
    assert f"--python {newer} " in clone.calls()[1]


# TRUST R8
@pytest.mark.parametrize("home", ["", "/", "//", "somewhere"])
def test_no_cache_is_made_without_a_home(clone: Clone, home: str) -> None:
    clone.env.pop("ONCEPROOF_CACHE", None)
    code, out, errors = clone.start(HOME=home, XDG_CACHE_HOME="relative")
    assert (code, out) == (2, "")
    assert (
        errors == f"onceproof: no home folder for the cache (HOME is '{home}'); set ONCEPROOF_CACHE=FOLDER\n"
    )
    assert clone.calls() == []


# TRUST R4
@pytest.mark.parametrize("name", ["with blank", "größe", "a,b", "100%", "$HOME", "it's", 'a"b'])
def test_it_starts_from_a_folder_with_any_name(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    clone = Clone(root)
    assert clone.start("doctor")[:2] == (0, f"PYTHONPATH={clone.root} -P -m harness.cli doctor")


def test_a_folder_with_a_colon_is_refused_in_one_line(tmp_path: Path) -> None:
    root = tmp_path / "a:b"
    root.mkdir()
    code, out, errors = Clone(root).start("doctor")
    assert (code, out, len(errors.splitlines())) == (2, "", 1)
    assert "colon" in errors


# TRUST R1
def test_a_failure_of_the_launcher_itself_is_an_internal_error(clone: Clone, tmp_path: Path) -> None:
    tools = tools_of(tmp_path / "tools")
    (tools / "sha256sum").unlink()
    (tools / "sha256sum").write_text("#!/bin/bash\nexit 1\n")
    (tools / "sha256sum").chmod(0o755)
    code, out, errors = clone.start(PATH=str(tools))
    assert (code, out) == (70, "")
    assert errors.startswith("onceproof: internal error: line ")
