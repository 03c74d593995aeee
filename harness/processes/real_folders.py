"""Safe deletion below folders that other users may have filled: follows no symbolic link, and touches only the user's folders.

An archive that was unpacked below `runs/` may contain links to anywhere. Every step from the root of the file system is opened
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
    """Return why a folder is not the one that was recorded with this inode; empty if it is."""
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
    """Delete `*/data` of a cluster's folder, the data of its servers. Links and other users' folders are left alone.

    With `inode`, nothing is deleted if another folder has this name by now.
    """
    with suppress(OSError), _opened(folder) as top:
        if inode not in (None, os.fstat(top).st_ino):
            return
        for name in os.listdir(top):  # noqa: PTH208  a Path would name it by its way again
            with suppress(OSError), _inside(top, name) as node, _inside(node, "data"):
                shutil.rmtree("data", ignore_errors=True, dir_fd=node)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder by its absolute path; raise OSError if a link is on the way, or if another user owns it."""
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
