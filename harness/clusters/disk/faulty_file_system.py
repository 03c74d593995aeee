"""The file system under a broker's data folder: passes everything through, and fails when ordered to.

Runs as one process for each broker, in its own mount namespace (harness.clusters.disk.mount starts it). It is mounted
over the folder that it serves: the folder was opened before the mount, so it can still reach the files below, as can
every process outside of the namespace. Orders come over a socket, one JSON object a line.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.clusters.disk.unsynced import Unsynced
from harness.contracts import DiskHarm

SOCKET = "disk.sock"
_THREADS = 64  # each delayed operation occupies one
_ERRORS = {DiskHarm.FULL: errno.ENOSPC, DiskHarm.BROKEN: errno.EIO, DiskHarm.READ_ONLY: errno.EROFS}


@dataclass(frozen=True)
class Order:
    """One fault of the disk, for the partition folders of some topics, in one or all log folders."""

    harm: DiskHarm
    delay_ms: int
    prefixes: tuple[str, ...]
    folder: str = ""  # empty: in all

    def hits(self, path: str) -> bool:
        """Return whether the path is inside an affected partition's folder; never one of an internal topic (`__…`)."""
        log_folder, partition, _file = ["", *path.split("/")][-3:]
        if not partition or (self.folder and log_folder != self.folder):
            return False
        return not partition.startswith("__") and partition.startswith(self.prefixes)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Order:
        return cls(
            DiskHarm(fields["harm"]),
            int(fields["delay_ms"]),
            tuple(fields["prefixes"]),
            fields.get("folder", ""),
        )


_NO_CHANGE = (DiskHarm.BROKEN, DiskHarm.READ_ONLY)
_NO_GROWTH = (*_NO_CHANGE, DiskHarm.FULL)


class Disk:
    """The operations that the library calls. Paths begin with a slash; internally they are relative to the folder."""

    use_ns = True  # times in nanoseconds

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self.unsynced = Unsynced()
        self.orders: tuple[Order, ...] = ()
        self.mounted = threading.Event()

    def init(self, path: str) -> None:
        os.fchdir(self._folder)  # the library has changed to / by now
        self.mounted.set()

    # Names

    def getattr(self, path: str, fi: Any = None) -> dict[str, int]:
        found = os.lstat(_below(path))
        names = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_blksize")
        times = {f"st_{kind}time": getattr(found, f"st_{kind}time_ns") for kind in "amc"}
        return {name: getattr(found, name) for name in names} | times

    def readdir(self, path: str, fh: int) -> Sequence[str]:
        return [".", "..", *(each.name for each in Path(_below(path)).iterdir())]

    def mkdir(self, path: str, mode: int) -> None:
        self._refuse(path, *_NO_GROWTH)
        Path(_below(path)).mkdir(mode)

    def rmdir(self, path: str) -> None:
        self._refuse(path, *_NO_CHANGE)
        Path(_below(path)).rmdir()

    def unlink(self, path: str) -> None:
        self._refuse(path, *_NO_CHANGE)
        self._remove(path, lambda: Path(_below(path)).unlink())

    def rename(self, old: str, new: str) -> None:
        self._refuse(old, *_NO_CHANGE)
        self._refuse(new, *_NO_CHANGE)
        self._remove(new, lambda: Path(_below(old)).rename(_below(new)))

    def _remove(self, path: str, act: Callable[[], object]) -> None:
        """Run `act`, which removes the file at `path` if it exists, and forget its unsynced content."""
        try:
            gone = os.lstat(_below(path))
        except FileNotFoundError:
            act()
            return
        act()
        if gone.st_nlink == 1:
            self.unsynced.removed(gone.st_ino)

    def chmod(self, path: str, mode: int) -> None:
        Path(_below(path)).chmod(mode)

    def utimens(self, path: str, times: tuple[int, int]) -> None:
        os.utime(_below(path), ns=times)

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(_below(path))
        names = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_namemax")
        return {name: getattr(found, name) for name in names}

    # Content

    def open(self, path: str, fi: Any) -> None:
        if fi.flags & (os.O_WRONLY | os.O_RDWR):
            self._refuse(path, *_NO_CHANGE)
        self._open(path, fi, 0)

    def create(self, path: str, mode: int, fi: Any) -> None:
        self._refuse(path, *_NO_GROWTH)
        self._open(path, fi, os.O_CREAT, mode)

    def _open(self, path: str, fi: Any, how: int, mode: int = 0) -> None:
        self._refuse(path, DiskHarm.BROKEN)
        writes = fi.flags & (os.O_WRONLY | os.O_RDWR)
        # Old content is read before it is overwritten; the kernel passes the position of each write.
        fi.fh = os.open(_below(path), how | (os.O_RDWR if writes else os.O_RDONLY) | os.O_CLOEXEC, mode)
        if fi.flags & os.O_TRUNC and writes:
            self.unsynced.truncate(fi.fh, 0)

    def read(self, path: str, size: int, offset: int, fi: Any) -> bytes:
        self._refuse(path, DiskHarm.BROKEN)
        return os.pread(fi.fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fi: Any) -> int:
        self._refuse(path, *_NO_GROWTH)
        self._delay(path, DiskHarm.SLOW_APPEND)
        return self.unsynced.write(fi.fh, data, offset)

    def truncate(self, path: str, length: int) -> None:
        grows = length > os.lstat(_below(path)).st_size
        self._refuse(path, *(_NO_GROWTH if grows else _NO_CHANGE))
        fd = os.open(_below(path), os.O_RDWR | os.O_CLOEXEC)
        try:
            self.unsynced.truncate(fd, length)
        finally:
            os.close(fd)

    def fsync(self, path: str, datasync: int, fi: Any) -> None:
        self._refuse(path, DiskHarm.BROKEN)
        self._delay(path, DiskHarm.SLOW_FSYNC)
        self.unsynced.fsync(fi.fh)

    def release(self, path: str, fi: Any) -> None:
        os.close(fi.fh)

    # Orders

    def obey(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute one order and return the answer."""
        match request["do"]:
            case "be":  # from now on this, and nothing else
                self.orders = tuple(Order.of(each) for each in request["orders"])
            case "lose":  # the broker is dead by now
                return asdict(self.unsynced.undo())
            case "status":
                harms = [order.harm.value for order in self.orders]
                return {
                    "mounted": self.mounted.is_set(),
                    "harms": harms,
                    "unsynced_bytes": self.unsynced.at_risk(),
                }
            case unknown:
                return {"error": f"unknown order {unknown!r}"}
        return {}

    def _refuse(self, path: str, *harms: DiskHarm) -> None:
        """Raise the error of the first order that hits the path with one of these harms."""
        for order in self.orders:
            if order.harm in harms and order.hits(path):
                raise OSError(_ERRORS[order.harm], os.strerror(_ERRORS[order.harm]))

    def _delay(self, path: str, harm: DiskHarm) -> None:
        """Delay the operation if it is on a segment: indexes are mapped into memory, and no thread waits for their writes."""
        for order in self.orders:
            if order.harm is harm and path.endswith(".log") and order.hits(path):
                time.sleep(order.delay_ms / 1000)


def _below(path: str) -> str:
    return "." + path


def serve(listener: socket.socket, disk: Disk) -> None:
    """Serve one connection after the other, one line each."""
    while True:
        connection, _ = listener.accept()
        # The harness may have given up: then its connection is closed, and the next one has to be served all the same.
        with suppress(OSError), connection, connection.makefile("rwb") as lines:
            try:
                answer = disk.obey(json.loads(lines.readline()))
            except (OSError, ValueError, KeyError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            lines.write(json.dumps(answer).encode() + b"\n")


def main(folder: str) -> None:
    """Serve `folder` until killed; make the socket in the current folder."""
    import mfusepy  # fails where there is no libfuse

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Path(SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    listener.listen()
    disk = Disk(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    threading.Thread(target=serve, args=(listener, disk), daemon=True).start()
    threads = {"max_threads": _THREADS} if mfusepy.fuse_version_minor >= 12 else {}
    mfusepy.FUSE(disk, folder, raw_fi=True, foreground=True, fsname="onceproof", **threads)


if __name__ == "__main__":
    main(sys.argv[1])
