"""Recognise full disks in any error, and report them with the folder and the remedy."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from harness.errors import NoRoom

if TYPE_CHECKING:
    from harness.ledger.rundir import RunDir

P = ParamSpec("P")
T = TypeVar("T")

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = re.compile(r"No space left on device|Disk quota exceeded")
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE: blocks behind the end of a file


def is_no_room(error: BaseException) -> bool:
    """Return True if a full disk caused the error, also inside Java or Arrow."""
    if isinstance(error, NoRoom) or (isinstance(error, OSError) and error.errno in _FULL):
        return True
    foreign = type(error).__module__.partition(".")[0] in ("py4j", "pyspark", "pyarrow")
    return foreign and _FULL_WORDS.search(str(error)) is not None


def room_error(error: BaseException, *folders: Path) -> NoRoom | None:
    """Return the error for users, which names the fullest of `folders`, if a full disk caused `error`; else None."""
    if isinstance(error, NoRoom):
        return error
    if not is_no_room(error):
        return None
    named = [Path(error.filename)] if isinstance(error, OSError) and isinstance(error.filename, str) else []
    return no_room(*named, *folders)


def no_room(*places: Path) -> NoRoom:
    """Return the error for users: the place with the least room, and the remedy."""
    measured = [(free, place) for place in places if (free := _free_bytes(place)) is not None]
    if not measured:
        return NoRoom(
            "no space left on device; free some disk space, or set --runs or TMPDIR to another disk"
        )
    free, place = min(measured, key=lambda pair: pair[0])
    return NoRoom(
        f"{place}: no space left on device ({free / 2**20:.1f} MiB free); free some disk space or choose another "
        "folder (--runs for run folders, TMPDIR for scratch, ONCEPROOF_CACHE for downloads)"
    )


@contextmanager
def needed_in(*folders: Path) -> Iterator[None]:
    """Turn an error of a full disk into one for users that names the fullest of `folders`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, NoRoom) or (for_users := room_error(error, *folders)) is None:
            raise
        raise for_users from error


def names_full_disks(
    work: Callable[Concatenate[Sequence[RunDir], P], T],
) -> Callable[Concatenate[Sequence[RunDir], P], T]:
    """Decorate a function of run folders: a full disk there, or for temporary files, is an error for users."""

    @functools.wraps(work)
    def working(runs: Sequence[RunDir], /, *args: P.args, **kwargs: P.kwargs) -> T:
        with needed_in(*(run.path for run in runs), *scratch_folders()):
            return work(runs, *args, **kwargs)

    return working


def scratch_folders() -> list[Path]:
    """Return the folder for temporary files; an empty list if no such folder can be written."""
    with suppress(OSError):
        return [Path(tempfile.gettempdir())]
    return []


def reserve(file: int, size: int) -> bool:
    """Reserve `size` more bytes for an open file; return False if the file system cannot or is full."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        return False
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return bool(fallocate(file, _KEEP_SIZE, os.fstat(file).st_size, size) == 0)


def give_back(file: int) -> None:
    """Free the unused part of a reservation."""
    with suppress(OSError):
        os.ftruncate(file, os.fstat(file).st_size)


def reason_of(error: BaseException) -> str:
    """Return the cause in words: the kernel's for an OSError, else the text of the error."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _free_bytes(place: Path) -> int | None:
    """Return the free bytes of the file system of a place that may not exist yet."""
    for folder in (place, *place.parents):
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        return found.f_bavail * found.f_frsize
    return None
