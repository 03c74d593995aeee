"""The part of a cluster's logs that belongs to one run: only what was written during the run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple


class _Mark(NamedTuple):
    inode: int
    size: int


class LogMarks:
    """The length of each log at one moment; `copy` takes what was written after it.

    A log that was renamed meanwhile (rotated) is found by its inode next to the new file. A log that got shorter was
    started again, and is copied from its beginning.
    """

    def __init__(self, logs: Mapping[str, Path] = {}) -> None:
        found = {name: _mark(log) for name, log in logs.items()}
        self._marks = {name: mark for name, mark in found.items() if mark is not None}

    def copy(self, logs: Mapping[str, Path], into: Path) -> None:
        """Write `NAME.log` for each log that exists."""
        into.mkdir(parents=True, exist_ok=True)
        for name, log in logs.items():
            if not log.is_file():
                continue
            with (into / f"{name}.log").open("wb") as copied:
                for piece, start in self._pieces(name, log):
                    with piece.open("rb") as source:
                        _copy(source, start, copied)

    def _pieces(self, name: str, log: Path) -> list[tuple[Path, int]]:
        """Return the files written to since the mark, oldest first, each with the position to read from."""
        mark, now = self._marks.get(name), _mark(log)
        if mark is None or now is None:
            return [(log, 0)]
        if now.inode == mark.inode:
            return [(log, mark.size if now.size >= mark.size else 0)]
        rotated = [path for path in log.parent.glob(f"{log.name}?*") if path.is_file()]
        before = [(path, mark.size) for path in rotated if path.stat().st_ino == mark.inode]
        return [*before[:1], (log, 0)]


def _mark(log: Path) -> _Mark | None:
    try:
        found = log.stat()
    except FileNotFoundError:
        return None
    return _Mark(found.st_ino, found.st_size)


def _copy(source: IO[bytes], start: int, into: IO[bytes]) -> None:
    source.seek(start, os.SEEK_SET)
    shutil.copyfileobj(source, into, 1 << 20)
