"""One engine of a benchmark, run in a fresh process, with the time to its results and the memory of all its processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_POLL_S = 0.1
_MB = 1024


class EngineFailed(Exception):
    """The engine ended without results; its output is on stderr."""


@dataclass(frozen=True)
class Measured:
    """`peak_mb` by kind of process: driver, jvm, workers; each the sum of its processes' own peaks (VmHWM).

    `together_mb` is the highest sum of resident memory at one moment. Pages that forked workers share count in each.
    """

    seconds: float
    cpu_s: (
        float  # of all its processes until then: more reliable than seconds if other programs use the machine
    )
    peak_mb: dict[str, int]
    together_mb: int
    result: dict[str, Any]


def run(*arguments: str) -> Measured:
    """Start `python -m benchmarks._engine` with these arguments and wait for its results."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks._engine", *arguments],
        stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True,
    )  # fmt: skip
    watch = _Watch(process.pid)
    try:
        assert process.stdout is not None
        last, seconds, cpu_s = "", 0.0, 0.0
        for line in process.stdout:
            last, seconds = line, time.perf_counter() - began
            watch.look()
            cpu_s = watch.cpu_s()
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        watch.stop()
    if code != 0 or not last.startswith("{"):
        raise EngineFailed(f"the process of {arguments[0]} ended with {code}")
    return Measured(round(seconds, 3), cpu_s, watch.peaks_mb(), watch.together // _MB, json.loads(last))


class _Watch:
    """A thread that watches a process and its descendants, several times a second, until stopped."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._peaks: dict[int, tuple[str, int]] = {}  # of each process: kind, kB
        self._ticks: dict[int, int] = {}  # of each process: time that it was given, as last seen
        self._looking = threading.Lock()
        self.together = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def peaks_mb(self) -> dict[str, int]:
        kinds = dict.fromkeys(("driver", "jvm", "workers"), 0)
        for kind, peak in self._peaks.values():
            kinds[kind] += peak
        return {kind: total // _MB for kind, total in kinds.items()}

    def cpu_s(self) -> float:
        return round(sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK"), 2)

    def _watch(self) -> None:
        while not self._stopped.wait(_POLL_S):
            self.look()

    def look(self) -> None:
        with self._looking:
            now = 0
            for pid, parent in _family(self._root):
                seen = _memory_of(pid)
                if seen is None:
                    continue
                program, peak, resident = seen
                if program == "java" and _program(parent) == "java":
                    continue  # the JVM starts a process: until that is another program, it shows the JVM's memory
                kind = "driver" if pid == self._root else "jvm" if program == "java" else "workers"
                self._peaks[pid] = kind, max(peak, self._peaks.get(pid, ("", 0))[1])
                self._ticks[pid] = max(_ticks(pid), self._ticks.get(pid, 0))
                now += resident
            self.together = max(self.together, now)


def family_cpu_s() -> float:
    """CPU seconds of this process and all that it started and that still run."""
    return sum(_ticks(pid) for pid, _ in _family(os.getpid())) / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> list[tuple[int, int]]:
    """A process and all that it started, each with its parent."""
    found: list[tuple[int, int]] = []
    look = [(root, 0)]
    while look:
        pid, parent = look.pop()
        found.append((pid, parent))
        try:
            for task in Path("/proc", str(pid), "task").iterdir():
                look += [(int(child), pid) for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it has ended in the meantime
    return found


def _program(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "exe").readlink().name
    except OSError:
        return ""


def _ticks(pid: int) -> int:
    try:
        fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])  # in user mode and in the kernel


def _memory_of(pid: int) -> tuple[str, int, int] | None:
    """The program that a process runs, the peak and the present size of its resident memory in kB."""
    program = _program(pid)
    try:
        lines = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return None
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "VmHWM" not in fields or program != _program(pid):
        return None  # it has ended, or has just become another program
    return program, int(fields["VmHWM"].split()[0]), int(fields["VmRSS"].split()[0])
