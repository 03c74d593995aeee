"""The content that a loss of power would lose: for each file, its state at the last fsync.

Writes go to the files at once, as the kernel's page cache shows them to all processes. Before each write the old content
is saved, until an fsync of that file makes the write durable. `undo` restores the saved content: that is the disk after a
loss of power. Making, renaming and removing a file count as durable at once; only content is lost.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

_BLOCK = 4096


@dataclass
class _Before:
    """A file as it was at its last fsync."""

    fd: int  # a separate descriptor: the file may be renamed or closed meanwhile
    size: int
    blocks: dict[int, bytes] = field(default_factory=dict)  # old content by block number, where overwritten
    written: int = 0  # bytes since then

    def keep(self, first: int, last: int) -> None:
        """Save the old content of the bytes from `first` up to `last`, as far as it is not saved yet."""
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
    """The unsynced content of all files; every change has to pass through here. Descriptors are open for reading and writing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # saving and changing are one step
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
        """Make the content durable; what is written during the call counts as not fsynced."""
        with self._lock:
            self._drop(os.fstat(fd).st_ino)
        os.fsync(fd)

    def removed(self, inode: int) -> None:
        """Forget a file that has no name any more: it has nothing to lose."""
        with self._lock:
            self._drop(inode)

    def undo(self) -> UnsyncedLoss:
        """Restore the disk to its state after a loss of power; afterwards nothing is at risk."""
        with self._lock:
            alive = [before for before in self._files.values() if os.fstat(before.fd).st_nlink > 0]
            for before in alive:
                before.restore()
            lost = UnsyncedLoss(len(alive), sum(before.written for before in alive))
            for inode in list(self._files):
                self._drop(inode)
            return lost

    def at_risk(self) -> int:
        """Return the number of bytes that were written and not fsynced."""
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
