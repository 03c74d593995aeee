"""Leftovers of clusters: processes, mounts, open files and memory, compared at each change of cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harness.nights.resources import memory_bytes, open_files
from harness.testing.leftovers import mounts_of, processes_of

_MORE_FILES = 64
_MORE_MEMORY_MB = 400
_MB = 1 << 20


@dataclass(frozen=True)
class Usage:
    """Resources that this process and the folder of a stopped cluster still use."""

    processes: tuple[str, ...] = ()  # command lines that name the folder of the cluster
    mounts: tuple[str, ...] = ()
    open_files: int = 0
    memory_mb: int = 0

    @classmethod
    def now(cls, folder: Path) -> Usage:
        """Measure after the cluster of this folder was stopped."""
        return cls(
            tuple(processes_of(folder.absolute())),
            tuple(mounts_of(folder.absolute())),
            open_files(),
            memory_bytes(os.getpid()) // _MB,
        )


def leaks(before: Usage | None, now: Usage) -> list[str]:
    """Return what was left behind, one line each. `before`: the usage at the previous change; None at the first change."""
    found = [f"process still running: {line[:200]}" for line in now.processes]
    found += [f"still mounted: {line[:200]}" for line in now.mounts]
    if before is not None:
        if (files := now.open_files - before.open_files) > _MORE_FILES:
            found.append(f"{files} more open files than at the previous change: {now.open_files}")
        if (memory := now.memory_mb - before.memory_mb) > _MORE_MEMORY_MB:
            found.append(f"{memory} MB more memory than at the previous change: {now.memory_mb} MB")
    return found
