"""Processes die with the harness; a sweep ends the processes of a crashed harness, and no others."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import OnceproofError
from harness.processes import child_process, process_list
from harness.runtime.cache import cache_dir
from harness.waiting import wait_until

PARENT = """
import sys, threading
from pathlib import Path
from harness.processes import child_process
folder = Path(sys.argv[1])
def start():  # on a thread that ends at once: its death must not end the child
    child_process.spawn(["sleep", "300"], log=None, pidfile=folder / "child.pid")
starter = threading.Thread(target=start)
starter.start()
starter.join()
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path_factory.mktemp("cache")))


@contextmanager
def _parent_and_child(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], child_process.Identity]]:
    """Start a harness in another process; it has started a child."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        yield parent, _identity(folder / "child.pid")


def test_a_child_dies_with_a_killed_harness(tmp_path: Path) -> None:
    with _parent_and_child(tmp_path) as (parent, child):
        assert child.alive(), "it outlives the thread that asked for it"
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not child.alive(), 5.0, f"child {child.pid} outlived its parent")


def test_without_setpriv_a_child_dies_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, path=None: None if name == "setpriv" else real(name, path=path)
    )
    process = child_process.spawn([sys.executable, "-c", ASK_DEATH_SIGNAL], log=tmp_path / "log")
    assert process.wait(10) == 0
    assert (tmp_path / "log").read_text() == "9\n"


def test_the_kernel_was_asked_for_sigkill(tmp_path: Path) -> None:
    process = child_process.spawn([sys.executable, "-c", ASK_DEATH_SIGNAL], log=tmp_path / "log")
    assert process.wait(10) == 0
    assert (tmp_path / "log").read_text() == "9\n"


ASK_DEATH_SIGNAL = """
import ctypes
signal = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(signal), 0, 0, 0)
print(signal.value)
"""


def test_spawn_makes_a_new_session_and_a_log(tmp_path: Path) -> None:
    process = child_process.spawn(["sh", "-c", "echo out; echo err >&2; sleep 300"], log=tmp_path / "log")
    try:
        assert os.getsid(process.pid) == process.pid
        wait_until(lambda: (tmp_path / "log").read_text() == "out\nerr\n", 5.0, "no output in the log")
    finally:
        child_process.end(process)
    assert process.returncode == -signal.SIGKILL


def test_end_accepts_a_process_that_has_ended() -> None:
    process = child_process.spawn(["true"], log=None)
    process.wait(10)
    child_process.end(process)
    child_process.end(process)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(OnceproofError, match="no-such-program"):
        child_process.spawn(["no-such-program"], log=None)


def test_sweep_ends_processes_started_below_a_folder(tmp_path: Path) -> None:
    process = child_process.spawn(["sleep", "300"], log=None, pidfile=tmp_path / "node" / "server.pid")
    assert [ended.pid for ended in child_process.sweep(tmp_path)] == [process.pid]
    assert process.wait(5) == -signal.SIGKILL
    assert not list(tmp_path.rglob("*.pid"))
    assert child_process.sweep(tmp_path) == []


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another"}, {"pid_namespace": 1}])
def test_sweep_never_ends_a_reused_pid(tmp_path: Path, change: dict[str, object]) -> None:
    pidfile = tmp_path / "server.pid"
    process = child_process.spawn(["sleep", "300"], log=None, pidfile=pidfile)
    try:
        _change_list(lambda line: json.dumps(json.loads(line) | change))
        assert child_process.sweep(tmp_path) == []
        assert process.poll() is None
        assert not pidfile.exists()
    finally:
        child_process.end(process)


@pytest.mark.parametrize(
    "text", ["", "{", "12345", '{"pid": 1}', '{"pid": "x", "start_ticks": 1, "boot_id": ""}', "[]"]
)
def test_sweep_ends_nothing_for_a_torn_line(tmp_path: Path, text: str) -> None:
    process = child_process.spawn(["sleep", "300"], log=None, pidfile=tmp_path / "server.pid")
    try:
        _change_list(lambda line: text)
        assert child_process.sweep(tmp_path) == []
        assert process.poll() is None
    finally:
        child_process.end(process)


def test_a_harness_that_ends_leaves_no_list(tmp_path: Path) -> None:
    code = "from pathlib import Path; from harness.processes import child_process; import sys\n"
    code += "child_process.end(child_process.spawn(['sleep', '300'], log=None, pidfile=Path(sys.argv[1]) / 'child.pid'))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[2], check=True)
    assert (tmp_path / "child.pid").exists()
    assert list((cache_dir() / process_list.LISTS).iterdir()) == []


def test_sweep_leaves_processes_of_another_running_harness(tmp_path: Path) -> None:
    with _parent_and_child(tmp_path) as (parent, child):
        assert child_process.sweep(tmp_path) == []
        assert child.alive()
        parent.send_signal(signal.SIGKILL)


def test_many_threads_spawn_at_once() -> None:
    started: list[subprocess.Popen[bytes]] = []
    threads = [
        threading.Thread(target=lambda: started.append(child_process.spawn(["true"], log=None)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(10) for process in started] == [0] * 8


def _change_list(change: Callable[[str], str]) -> None:
    """Change the last line of this harness's list of processes."""
    (file,) = (cache_dir() / process_list.LISTS).glob(f"{os.getpid()}-*.jsonl")
    *before, last = file.read_text().splitlines()
    file.write_text("\n".join([*before, change(last)]) + "\n")


def _identity(pidfile: Path) -> child_process.Identity:
    return child_process.Identity(**json.loads(pidfile.read_text()))
