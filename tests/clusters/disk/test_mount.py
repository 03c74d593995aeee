"""The mounted file system: the view of a process on it, and that nothing is left, however the harness ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clusters.disk import mount as disk_mount
from harness.clusters.disk.mount import Mount
from harness.errors import ClusterError, SetupError
from harness.machine import kernel
from harness.machine.answers import no, yes
from harness.testing.leftovers import mounts_of, processes_of
from harness.waiting import wait_until

needs_fuse = pytest.mark.skipif(
    disk_mount.trouble() is not None, reason=f"no FUSE here: {disk_mount.trouble()}"
)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    made = Mount(tmp_path, tmp_path / "data")
    made.ensure()
    yield made
    made.end()


def _run(mount: Mount, script: str, folder: Path) -> str:
    words = [str(word) for word in mount.inside([sys.executable, "-c", script])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert mounts_of(folder) == [], "the mount is in the namespace of the two processes alone"
    return done.stdout.strip()


_APPEND = """
import os
try:
    fd = os.open("data/orders-0/0.log", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 5000)
    {}
except OSError as error:
    print(error.strerror)
"""
_APPEND_ONLY, _APPEND_AND_FSYNC = _APPEND.format("pass"), _APPEND.format("os.fsync(fd)")


@needs_fuse
def test_files_are_written_through_and_mapped_ones_too(mount: Mount, tmp_path: Path) -> None:
    script = """
import mmap, os
fd = os.open("data/orders-0/0.index", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 1 << 20)
index = mmap.mmap(fd, 1 << 20)
index[5000:5003] = b"abc"
index.flush()
os.rename("data/orders-0/0.index", "data/orders-0/1.index")
print(open("/proc/self/mounts").read().count("onceproof"), os.getcwd())
"""
    assert _run(mount, script, tmp_path) == f"1 {tmp_path}"
    written = (tmp_path / "data/orders-0/1.index").read_bytes()
    assert (len(written), written[5000:5003]) == (1 << 20, b"abc")


@needs_fuse
@pytest.mark.parametrize(
    ("harm", "text"),
    [
        ("full", "No space left on device"),
        ("broken", "Input/output error"),
        ("read_only", "Read-only file system"),
    ],
)
def test_a_writer_gets_the_error_until_the_disk_is_mended(
    mount: Mount, tmp_path: Path, harm: str, text: str
) -> None:
    assert _run(mount, _APPEND_ONLY, tmp_path) == ""
    mount.be([{"harm": harm, "delay_ms": 0, "prefixes": ["orders"]}])
    assert mount.harms() == [harm]
    assert _run(mount, _APPEND_ONLY, tmp_path) == text
    mount.be([])
    assert mount.harms() == []
    assert _run(mount, _APPEND_ONLY, tmp_path) == ""


@needs_fuse
@pytest.mark.parametrize(
    ("script", "kept"), [(_APPEND_ONLY, 0), (_APPEND_AND_FSYNC, 5000)], ids=["lost", "fsynced"]
)
def test_a_loss_of_power_loses_content_that_was_not_fsynced(
    mount: Mount, tmp_path: Path, script: str, kept: int
) -> None:
    _run(mount, script, tmp_path)
    assert (tmp_path / "data/orders-0/0.log").stat().st_size == 5000
    assert mount.lose()["bytes"] == 5000 - kept
    assert (tmp_path / "data/orders-0/0.log").stat().st_size == kept
    mount.end()
    assert mount.lose() == {"files": 0, "bytes": 0}


_HOLDER = """
import sys, time
from pathlib import Path
from harness.processes import child_process
from harness.clusters.disk.mount import Mount
node = Path(sys.argv[1])
mount = Mount(node, node / "data")
child = [sys.executable, "-c", "import sys, time; open('data/up', 'w'); time.sleep(600)", node]
child_process.spawn(mount.inside(child), log=node / "child.log", pidfile=node / "child.pid")
time.sleep(600)
"""


@needs_fuse
def test_nothing_is_left_when_the_harness_is_killed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path)], cwd=disk_mount._PROJECT)
    try:
        wait_until((tmp_path / "data/up").exists, 30.0, "the child in the namespace did not start")
        assert len(processes_of(tmp_path)) == 3, "the harness, the file system and the child"
        assert mounts_of(tmp_path) == []
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
    wait_until(lambda: not processes_of(tmp_path), 10.0, lambda: f"left: {processes_of(tmp_path)}")
    assert mounts_of(tmp_path) == []


@needs_fuse
def test_a_file_system_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"ended: .*No such file or directory.*disk\.log"):
        Mount(tmp_path, tmp_path / "missing").ensure()


@pytest.mark.parametrize(
    ("lacks", "remedy"),
    [
        ("library", r"no libfuse3 \(Debian: libfuse3-3\); run as root, with Debian's packages"),
        ("right", r"CAP_SYS_ADMIN is missing.*; run as root"),
        ("programs", "no unshare and no nsenter on the path; run as root"),
        ("package", "the Python package mfusepy is missing; run as root"),
    ],
)
def test_an_unsuitable_machine_raises_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacks: str, remedy: str
) -> None:
    answers = {
        "library": no("no libfuse3 (Debian: libfuse3-3)"),
        "right": no("CAP_SYS_ADMIN is missing: no mount"),
    }
    monkeypatch.setattr(kernel, "fuse", lambda: answers.get(lacks, yes("all there")))
    if lacks == "programs":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setattr(disk_mount, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=remedy):
        Mount(tmp_path, tmp_path).ensure()


def test_the_library_is_installed_before_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []
    monkeypatch.setattr(disk_mount, "fuse", lambda: installed.append("libfuse3"))
    monkeypatch.setattr(kernel, "fuse", lambda: yes("here") if installed else no("no libfuse3"))
    monkeypatch.setattr("shutil.which", lambda name: name)
    assert disk_mount.trouble() == "no libfuse3"
    assert disk_mount.possible()
