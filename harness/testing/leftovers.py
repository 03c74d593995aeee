"""Find leftovers of a crash by a folder: every process and mount of a run or cluster has its folder in its name."""

from __future__ import annotations

import os
from pathlib import Path


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of other processes that name the folder, as all servers and workers do."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if str(folder) in words and line.parent.name != str(os.getpid()):
            found.append(words)
    return found


def mounts_of(folder: Path) -> list[str]:
    """Return the lines of the machine's mount table that name the folder."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if str(folder) in line]


def control_groups(owner: int) -> set[str]:
    """Return the control groups, of any hierarchy, that the process with this pid made: others may be in use."""
    found = Path("/sys/fs/cgroup").glob(f"**/onceproof-{owner}-*")
    return {str(path) for path in found if path.is_dir()}
