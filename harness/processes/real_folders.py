"""Deleting below folders that others may have filled: no symbolic link is followed, and only the user's own folders count.

An archive that was unpacked below `runs/` may hold links to anywhere. Every step from the root of the file system is opened
with O_NOFOLLOW, and from there on everything is named relative to the opened folder, so no link can be put in between.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def doubt(folder: Path, inode: int) -> str:
    """Why a folder is not the one that was recorded with this inode; empty: it is."""
    try:
        with _opened(folder) as fd:
            if os.fstat(fd).st_ino != inode:
                return "it is another folder than the one that was recorded"
    except FileNotFoundError:
        return "it does not exist any more"
    except OSError as error:
        return f"it is not a real folder of this user ({error.strerror})"
    return ""


def clear_data(folder: Path, inode: int | None = None) -> None:
    """Delete `*/data` of a cluster's folder: what its servers stored. Links and folders of others stay as they are.

    With `inode`, nothing is done in another folder that has this name by now.
    """
    with suppress(OSError), _opened(folder) as top:
        if inode not in (None, os.fstat(top).st_ino):
            return
        for name in os.listdir(top):  # noqa: PTH208  a Path would name it by its way again
            with suppress(OSError), _inside(top, name) as node, _inside(node, "data"):
                shutil.rmtree("data", ignore_errors=True, dir_fd=node)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A folder by its absolute path; an OSError when a link is on the way, or when it is not of this user."""
    fd = os.open("/", _FLAGS)
    try:
        for name in folder.parts[1:]:
            below = os.open(name, _FLAGS, dir_fd=fd)
            os.close(fd)
            fd = below
        _must_be_own(fd)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _inside(top: int, name: str) -> Iterator[int]:
    fd = os.open(name, _FLAGS, dir_fd=top)
    try:
        _must_be_own(fd)
        yield fd
    finally:
        os.close(fd)


def _must_be_own(fd: int) -> None:
    if os.fstat(fd).st_uid != os.geteuid():
        raise PermissionError("it belongs to another user")
