"""The wheel of this project, built and installed into a clean environment, as a user has it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("harness", "faults", "suites", "reports", "onceproof.py", "onceproof_pytest.py")
FILES = ("pyproject.toml", "README.md", "LICENSE")
LIMIT_S = 300.0
END_LIMIT_S = 60.0  # after Ctrl-C: faults are undone and the cluster is stopped


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel and the packages of requirements.lock."""

    bin: Path
    wheel: Path

    def run(
        self, words: Sequence[str | Path], folder: Path, limit_s: float = LIMIT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in a folder, without the paths of this session.

        After the limit it is interrupted as by Ctrl-C, and AssertionError has its last lines.
        """
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "GITHUB"))}
        command = [str(self.bin / words[0]), *map(str, words[1:])]
        with subprocess.Popen(
            command, cwd=folder, env=inherited, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                out, err = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                out, err = _last_words(process)
                last = "\n".join([*out.splitlines()[-20:], *err.splitlines()[-20:]])
                raise AssertionError(f"{words[0]} still ran after {limit_s:.0f} s:\n{last}") from None
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def install(folder: Path) -> Installed:
    """Build from a copy, since setuptools writes beside its sources, and install from uv's cache where it has all."""
    source, python = folder / "source", folder / "venv" / "bin" / "python"
    source.mkdir()
    for name in PARTS:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, source)
    for name in FILES:
        shutil.copy(ROOT / name, source)
    _uv("build", "--wheel", "--out-dir", folder / "dist", source)
    (wheel,) = (folder / "dist").glob("*.whl")
    _uv("venv", "--python", sys.executable, folder / "venv")
    into = ("pip", "install", "--no-deps", "--python", python)
    _uv(*into, "--require-hashes", "-r", ROOT / "requirements.lock")
    _uv(*into, wheel)
    return Installed(python.parent, wheel)


def _last_words(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return both outputs of a process that was asked to end; it is killed if it does not."""
    try:
        return process.communicate(timeout=END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _uv(*words: str | Path) -> None:
    """Run uv without network; where its cache lacks something, with it."""
    uv = Path(sys.executable).with_name("uv")
    for more in (["--offline"], []):
        done = subprocess.run(
            [uv, *words, "--quiet", *more], text=True, capture_output=True, check=False, timeout=LIMIT_S
        )
        if done.returncode == 0:
            return
    raise AssertionError(f"uv {words[0]} failed: {done.stderr}")
