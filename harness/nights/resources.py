"""Memory, processes, open files and disk of a night, sampled between its runs, and how they developed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import linear_regression, median

UNITS = {
    "memory_mb": "MB of memory in onceproof itself",
    "open_files": "open files of onceproof itself",
    "children": "processes that it started",
    "children_mb": "MB of memory in these",
    "runs_mb": "MB of run folders",
    "free_mb": "MB free on their disk",
}
_HOUR_S = 3600.0
_LEAST_S = 1800.0  # between the first and the last sample of a trend: what happens at the start is no trend
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1 << 20

Sample = Mapping[str, float]  # `used_s`: when; and the keys of UNITS


def sampled(runs: Path, runs_bytes: int) -> dict[str, int]:
    """Return the present values of UNITS."""
    children = descendants(os.getpid())
    disk = os.statvfs(runs)
    return {
        "memory_mb": memory_bytes(os.getpid()) // _MB,
        "open_files": open_files(),
        "children": len(children),
        "children_mb": sum(map(memory_bytes, children)) // _MB,
        "runs_mb": runs_bytes // _MB,
        "free_mb": disk.f_bavail * disk.f_frsize // _MB,
    }


def development(samples: Sequence[Sample]) -> dict[str, dict[str, float | None]]:
    """Return for each of UNITS the least, the median and the largest value, and the trend per hour (a straight line).

    The trend is null if there are fewer than three samples, as two have no noise to compare with, or less than half an hour of them.
    """
    if not samples:
        return {}
    at = [float(sample["used_s"]) for sample in samples]
    too_few = len(set(at)) < 3 or max(at) - min(at) < _LEAST_S
    found: dict[str, dict[str, float | None]] = {}
    for name in UNITS:
        values = [float(sample[name]) for sample in samples]
        found[name] = {
            "min": min(values),
            "median": median(values),
            "max": max(values),
            "per_hour": None if too_few else round(linear_regression(at, values).slope * _HOUR_S, 2),
        }
    return found


def lines(developed: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """Return the development as sentences for a terminal, one for each of UNITS."""
    found = []
    for name, values in developed.items():
        trend = values["per_hour"]
        change = "" if trend is None else f", {trend:+.0f} per hour"
        found.append(
            f"{values['min']:.0f} to {values['max']:.0f} {UNITS[name]}, median {values['median']:.0f}{change}"
        )
    return found


def open_files() -> int:
    """Return the number of open files of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # the folder of the listing itself counts as well


def memory_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def descendants(ancestor: int) -> set[int]:
    """Return the processes that a process started, and theirs."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program, in parentheses, may contain anything.
            parents[int(stat.parent.name)] = int(
                stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            )
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {ancestor}
