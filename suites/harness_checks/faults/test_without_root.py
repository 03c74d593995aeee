"""Most faults work without root and without Docker: checked as the user `nobody`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.runtime.cache import cache_dir
from suites.harness_checks.faults._rootless import FAULTS

ROOT = Path(__file__).resolve().parents[3]
NOBODY = "65534"
_AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of the user `nobody`, with the programs that are already installed."""
    with tempfile.TemporaryDirectory(prefix="onceproof-nobody-") as temp:
        folder = Path(temp)
        folder.chmod(0o755)
        for name in ("kafka", "toxiproxy", "byteman", "libfaketime", "storage"):
            if (cache_dir() / name).exists():
                shutil.copytree(cache_dir() / name, folder / "cache" / name)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, int(NOBODY), int(NOBODY), follow_symlinks=False)
        yield folder


def _interpreter_for_all() -> Path:
    """Return this interpreter, or another one of its version that every user may run: root's may be in root's home."""
    same = shutil.which(
        f"python{sys.version_info.major}.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin"
    )
    for found in (Path(sys.executable).resolve(), Path(same or sys.executable).resolve()):
        if all(folder.stat().st_mode & 0o001 for folder in (found, *found.parents)):
            return found
    raise AssertionError(
        f"the user nobody cannot run {sys.executable}, and no other Python of its version was found"
    )


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_faults_that_need_no_root_bite_and_heal_for_an_ordinary_user(theirs: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run as root: all other checks already show the same")
    ended = subprocess.run(
        [
            *_AS_NOBODY,
            _interpreter_for_all(),
            "-m",
            "suites.harness_checks.faults._rootless",
            str(theirs / "cluster"),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "HOME": str(theirs),
            "ONCEPROOF_CACHE": str(theirs / "cache"),
            "PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}",
        },
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    reports = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    for line in reports:
        print(line)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert [line["fault"] for line in reports] == [str(fault) for fault in FAULTS]
    assert {line["uid"] for line in reports} == {int(NOBODY)}
    assert not {line["way"] for line in reports} & {"fuse", "cgroup"}, "ways that need root"
