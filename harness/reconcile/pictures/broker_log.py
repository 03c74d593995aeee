"""The lines that brokers logged around a moment, read from `logs/cluster` of a run folder.

A folder may come from a stranger and its logs may be large: only plain files are opened, the place of the moment is found by
halving, and of each file no more than MOST_BYTES are read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

from harness.ledger.manifest import NAME
from harness.ledger.value_checks import Wrong
from harness.runtime.terminal import printable

AROUND_S, MOST_LINES, MOST_TEXT = 2.0, 12, 300
MOST_FILES, MOST_BYTES = 16, 1 << 18
_PIECE = 1 << 14  # bytes in which a line with a time is looked for
_LINE = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) ([^\r\n]*)")
_RANK = {"FATAL": 0, "ERROR": 0, "WARN": 1}


@dataclass(frozen=True)
class WallClock:
    """The wall clock of a run: the moment that its seconds count from, and the offset from UTC of its machine."""

    unix: float
    utc_offset_s: float

    @classmethod
    def of(cls, clock: Mapping[str, Any]) -> WallClock | None:
        """Return the clock in a manifest; None if it has none."""
        wall = str(clock.get("wall", ""))
        try:
            local = datetime.strptime(wall, "%Y-%m-%dT%H:%M:%S%z")
        except ValueError:
            return None
        offset = local.utcoffset() or timedelta()
        return cls(float(clock.get("unix") or local.timestamp()), offset.total_seconds())


@dataclass(frozen=True)
class _Line:
    unix: float  # if the log's time is UTC
    level: str
    text: str


def lines_around(
    folder: Path, clock: WallClock, t_s: float, nodes: Sequence[str], started_s: float = 0.0
) -> list[dict[str, Any]]:
    """Return {"t_s", "node", "level", "text"} of at most MOST_LINES lines within AROUND_S of the moment, in order of time.

    Errors and warnings come before other lines, then those that are nearest to the moment. `nodes`: only of these; empty: of
    all. `started_s`: when the run's logs begin.
    """
    found: list[tuple[tuple[int, float], dict[str, Any]]] = []
    for node, path in _logs(folder, nodes):
        with _opened(path) as file:
            if file is None:
                continue
            offset_s = _offset_s(file, clock, clock.unix + started_s)
            low = clock.unix + t_s - AROUND_S + offset_s
            for line in _between(file, low, low + 2 * AROUND_S):
                at_s = line.unix - offset_s - clock.unix
                rank = _RANK.get(line.level, 2), abs(at_s - t_s)
                shown = {"t_s": round(at_s, 3), "node": node, "level": line.level, "text": line.text}
                found.append((rank, shown))
    found.sort(key=lambda each: each[0])
    return sorted((shown for _, shown in found[:MOST_LINES]), key=lambda shown: float(shown["t_s"]))


def _logs(folder: Path, nodes: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the log of each of the nodes; without nodes, or if none of them has one, those of all brokers."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode) or not stat.S_ISDIR(folder.parent.lstat().st_mode):
            return []
        there = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".log"))
    except OSError:
        return []
    every = {name.removesuffix(".log"): folder / name for name in there if _is_name(name)}
    mine = [(node, every[node]) for node in dict.fromkeys(nodes) if node in every]
    return (mine or list(every.items()))[:MOST_FILES]


def _is_name(name: str) -> bool:
    try:
        NAME(name)
    except Wrong:
        return False
    return True


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | None]:
    """Yield the file, or None if it is not a plain file that can be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        yield None
        return
    with os.fdopen(fd, "rb") as file:
        yield file


def _offset_s(file: IO[bytes], clock: WallClock, began: float) -> float:
    """Return the offset from UTC in which the log is written: that of the machine, or none as in containers."""
    file.seek(0)
    first = next(_parsed(file.read(_PIECE)), None)
    if first is None:
        return clock.utc_offset_s
    return min((clock.utc_offset_s, 0.0), key=lambda offset_s: abs(first.unix - offset_s - began))


def _between(file: IO[bytes], low: float, high: float) -> Iterator[_Line]:
    """Yield the lines from one time to another."""
    first, last = 0, file.seek(0, os.SEEK_END)
    while last - first > _PIECE:  # a log is in order of time, but for some milliseconds
        middle = (first + last) // 2
        file.seek(middle)
        line = next(_parsed(file.read(_PIECE)), None)
        if line is not None and line.unix < low:
            first = middle
        else:
            last = middle
    file.seek(first)
    for line in _parsed(file.read(MOST_BYTES)):
        if low <= line.unix <= high:
            yield line
        elif line.unix > high + 1:
            return


def _parsed(data: bytes) -> Iterator[_Line]:
    """Yield the lines with a time; lines that follow them, such as those of a stack trace, have none."""
    for found in _LINE.finditer(data):
        try:
            at = datetime.strptime(found[1].decode(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
        text = printable(found[4][: 4 * MOST_TEXT].decode(errors="replace"))
        yield _Line(at + int(found[2]) / 1000, found[3].decode(), text[:MOST_TEXT])
