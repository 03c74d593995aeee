"""Full disks: recognised wherever they are met, and reported with the folder and the remedy."""

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
    """Whether a full disk is behind an error, also where Java or Arrow met it."""
    if isinstance(error, NoRoom) or (isinstance(error, OSError) and error.errno in _FULL):
        return True
    foreign = type(error).__module__.partition(".")[0] in ("py4j", "pyspark", "pyarrow")
    return foreign and _FULL_WORDS.search(str(error)) is not None


def room_error(error: BaseException, *folders: Path) -> NoRoom | None:
    """The error for users when a full disk is behind `error`, else None. Names the fullest of `folders`."""
    if isinstance(error, NoRoom):
        return error
    if not is_no_room(error):
        return None
    named = [Path(error.filename)] if isinstance(error, OSError) and isinstance(error.filename, str) else []
    return no_room(*named, *folders)


def no_room(*places: Path) -> NoRoom:
    """The error for users: the place with the least room, and the remedy."""
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
        if isinstance(error, NoRoom) or (told := room_error(error, *folders)) is None:
            raise
        raise told from error


def names_full_disks(
    work: Callable[Concatenate[Sequence[RunDir], P], T],
) -> Callable[Concatenate[Sequence[RunDir], P], T]:
    """For what works on run folders: a full disk there, or where temporary files go, is an error for users."""

    @functools.wraps(work)
    def working(runs: Sequence[RunDir], /, *args: P.args, **kwargs: P.kwargs) -> T:
        with needed_in(*(run.path for run in runs), *scratch_folders()):
            return work(runs, *args, **kwargs)

    return working


def scratch_folders() -> list[Path]:
    """Where temporary files go; none when no such folder can be written."""
    with suppress(OSError):
        return [Path(tempfile.gettempdir())]
    return []


def reserve(file: int, size: int) -> bool:
    """Keep room for `size` more bytes of an open file; False where the file system cannot or has none."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        return False
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return bool(fallocate(file, _KEEP_SIZE, os.fstat(file).st_size, size) == 0)


def give_back(file: int) -> None:
    """Free what `reserve` kept and nothing used."""
    with suppress(OSError):
        os.ftruncate(file, os.fstat(file).st_size)


def reason_of(error: BaseException) -> str:
    """The cause in words: that of the kernel where it is one, else the text of the error."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _free_bytes(place: Path) -> int | None:
    """Of the file system of a place that may not exist yet."""
    for folder in (place, *place.parents):
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        return found.f_bavail * found.f_frsize
    return None
