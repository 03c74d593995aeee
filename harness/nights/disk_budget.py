"""A limit for the run folders of a night: runs as promised are packed, then reduced to their results, the oldest ones first.

Evidence is never touched: `pack` leaves every run whole that is inconclusive or not as expected.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.ledger.packing import pack
from harness.ledger.rundir import RunDir
from harness.machine.kernel import DISK_NEEDED_GIB

GIB = 1 << 30
_BLOCK = 512  # bytes, of st_blocks


@dataclass(frozen=True)
class Kept:
    """The result of a reduction: the bytes of all run folders, and the run folders that became smaller."""

    total: int
    smaller: tuple[Path, ...] = ()


def kept_within(limit: int, folders: Sequence[Path]) -> Kept:
    """Make run folders smaller, the first one first, until all together have at most `limit` bytes."""
    sizes = {folder: size_of(folder) for folder in folders}
    smaller: dict[Path, None] = {}
    for keep in ("evidence", "least"):
        for folder in folders:
            if sum(sizes.values()) <= limit:
                break
            pack(RunDir(folder), keep)
            if (size := size_of(folder)) < sizes[folder]:
                sizes[folder] = size
                smaller[folder] = None
    return Kept(sum(sizes.values()), tuple(smaller))


def run_folders(runs: Path, scenarios: Iterable[str]) -> list[Path]:
    """Return the run folders of these scenarios, the oldest one first."""
    folders = [each for name in scenarios for each in (runs / name).glob("*")]
    return sorted(
        (each.resolve() for each in folders if each.is_dir() and not each.is_symlink()),
        key=lambda each: each.name,  # it begins with the time
    )


def size_of(folder: Path) -> int:
    """Return the bytes that a folder takes on its disk. What vanishes meanwhile counts as nothing: the last run is being reconciled."""
    total = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * _BLOCK  # noqa: PTH118  paths would double the time
    return total


def must_have_room(runs: Path, budget_gb: float | None) -> None:
    """Raise UsageError if the disk of the run folders has less free space than a night needs, or than its budget."""
    there = next(place for place in (runs.absolute(), *runs.absolute().parents) if place.is_dir())
    free_gib = shutil.disk_usage(there).free / GIB
    if budget_gb is not None and free_gib < budget_gb:
        raise UsageError(
            f"--disk-gb {budget_gb:g}: only {free_gib:.1f} GiB are free in {runs}; free some disk space, give a smaller "
            "budget, or choose another folder with --runs"
        )
    if free_gib < DISK_NEEDED_GIB:
        raise UsageError(
            f"{runs}: only {free_gib:.1f} GiB are free, a night needs {DISK_NEEDED_GIB:g}; free some disk space, or choose "
            "another folder with --runs"
        )
