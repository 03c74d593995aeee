"""A file system of a few megabytes that can be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def mounted_small_disk(place: Path, size_mb: int) -> Iterator[Path]:
    """Mount a small file system at a new folder; skip the test, with a message, if that is not possible."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a full disk needs root, to mount a small one")
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "onceproof-test", place],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"NOT TESTED: a full disk; no tmpfs can be mounted: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(place: Path, name: str = "filler") -> Path:
    """Fill the file system to the last byte; return the file that does so."""
    filler = place / name
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    return filler
