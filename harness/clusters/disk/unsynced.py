"""What a loss of power would take: for each file, how it was when it was last fsynced.

Writes go to the files at once, as the page cache of a kernel shows them to everybody. Before each one, what it
changes is kept aside, until an fsync of that file makes it durable. `undo` puts back what is still kept: that is the
disk after a loss of power. That a file was made, renamed or removed counts as durable at once; only content is lost.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

_BLOCK = 4096


@dataclass
class _Before:
    """A file as it was at its last fsync."""

    fd: int  # a descriptor of our own: the file may be renamed or closed meanwhile
    size: int
    blocks: dict[int, bytes] = field(default_factory=dict)  # old content by block number, where overwritten
    written: int = 0  # bytes that came since

    def keep(self, first: int, last: int) -> None:
        """Keep the old content of the bytes from `first` up to `last`, as far as it is not kept yet."""
        for number in range(first // _BLOCK, -(-min(last, self.size) // _BLOCK)):
            if number not in self.blocks:
                wanted = min(_BLOCK, self.size - number * _BLOCK)
                self.blocks[number] = os.pread(self.fd, wanted, number * _BLOCK)

    def restore(self) -> None:
        for number, old in self.blocks.items():
            os.pwrite(self.fd, old, number * _BLOCK)
        os.ftruncate(self.fd, self.size)


@dataclass(frozen=True)
class UnsyncedLoss:
    files: int
    bytes: int  # that were written and not fsynced


class Unsynced:
    """Every change of content has to come through here. Descriptors are open for reading and writing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # what is kept and what is changed belong together
        self._files: dict[int, _Before] = {}  # by inode

    def write(self, fd: int, data: bytes, offset: int) -> int:
        with self._lock:
            before = self._before(fd)
            before.keep(offset, offset + len(data))
            before.written += len(data)
            return os.pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        with self._lock:
            before = self._before(fd)
            before.keep(size, before.size)
            os.ftruncate(fd, size)

    def fsync(self, fd: int) -> None:
        """What is written while this goes on counts as not fsynced."""
        with self._lock:
            self._drop(os.fstat(fd).st_ino)
        os.fsync(fd)

    def removed(self, inode: int) -> None:
        """The file has no name any more: there is nothing to lose."""
        with self._lock:
            self._drop(inode)

    def undo(self) -> UnsyncedLoss:
        """The disk as it comes back; afterwards nothing is at risk."""
        with self._lock:
            alive = [before for before in self._files.values() if os.fstat(before.fd).st_nlink > 0]
            for before in alive:
                before.restore()
            lost = UnsyncedLoss(len(alive), sum(before.written for before in alive))
            for inode in list(self._files):
                self._drop(inode)
            return lost

    def at_risk(self) -> int:
        """How many bytes were written and not fsynced."""
        with self._lock:
            return sum(before.written for before in self._files.values())

    def _before(self, fd: int) -> _Before:
        now = os.fstat(fd)
        if now.st_ino not in self._files:
            self._files[now.st_ino] = _Before(os.dup(fd), now.st_size)
        return self._files[now.st_ino]

    def _drop(self, inode: int) -> None:
        before = self._files.pop(inode, None)
        if before is not None:
            os.close(before.fd)
