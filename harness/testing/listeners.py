"""The TCP ports that a process listens on, as the kernel reports them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_LISTEN = "0A"


def listening(pid: int) -> set[tuple[str, int]]:
    """Return the addresses, in the kernel's hexadecimal form, and ports on which the process listens."""
    inodes = _sockets(pid)
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                host, _, port = fields[1].rpartition(":")
                found.add((host, int(port, 16)))
    return found


def listening_ports(pid: int) -> set[int]:
    return {port for _host, port in listening(pid)}


def _sockets(pid: int) -> set[str]:
    """Return the inodes of the sockets that the process has open."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            target = str(entry.readlink())
            if target.startswith("socket:["):
                found.add(target[len("socket:[") : -1])
    return found
