"""The identity of a recorded process: never a later process with the same pid, and never one of another machine.

A record may be in a folder that several machines, containers or users share. Pids mean nothing outside their pid
namespace, so a record also names its machine, its pid namespace and its user. Only for a record of this machine,
this namespace and this user is it known whether the process has ended.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

_INITIAL_NAMESPACE = (
    0xEFFFFFFC  # the kernel's constant: the pid namespace of a machine outside of all containers
)
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


@dataclass(frozen=True)
class Identity:
    """A process, distinguished from later processes with the same pid and from processes of other machines."""

    pid: int
    start_ticks: int  # since boot, so that a reused pid differs
    boot_id: str
    machine_id: str = ""  # empty, 0 and -1: written by an older version without these fields
    pid_namespace: int = 0
    uid: int = -1  # the user who wrote the record

    def alive(self) -> bool:
        """Return whether the process runs on this machine now; meaningless if `foreign` returns a reason."""
        now = identify(self.pid)
        return (
            now is not None
            and (self.start_ticks, self.boot_id) == (now.start_ticks, now.boot_id)
            and self.pid_namespace in (0, now.pid_namespace)
        )

    def foreign(self) -> str:
        """Return why it is not known here whether the process runs, or why it must not be touched; empty if neither."""
        if not self.machine_id or not self.pid_namespace or self.uid < 0:
            return "its record is of an older version of onceproof and does not name its machine"
        if self.machine_id != machine_id():
            return "it belongs to another machine"
        if self.uid != os.geteuid():
            return f"it belongs to user {self.uid}"
        if self.pid_namespace != pid_namespace():
            return "it belongs to another container (pid namespace)"
        if self.boot_id != boot_id() and self.pid_namespace != _INITIAL_NAMESPACE:
            # The machine id of a container comes from its image: it may be another host.
            return "it belongs to a container of another boot, maybe on another host"
        return ""

    def ended(self) -> bool:
        """Return whether the process has certainly ended, so that this user may remove what it left."""
        return not self.foreign() and not self.alive()


def identify(pid: int) -> Identity | None:
    """Return the identity of a running process; None if it does not run. A zombie has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may contain spaces and brackets
    if fields[0] in "ZX":
        return None
    return Identity(pid, int(fields[19]), boot_id(), machine_id(), pid_namespace(), os.geteuid())


def own_identity() -> Identity:
    """Return the identity of this process."""
    identity = identify(os.getpid())
    assert identity is not None
    return identity


def read_pidfile(pidfile: Path) -> Identity | None:
    """Return the process that a file names; None for a torn or foreign file."""
    try:
        return from_fields(json.loads(pidfile.read_text(encoding="ascii")))
    except (ValueError, FileNotFoundError):
        return None


def from_fields(fields: object) -> Identity | None:
    """Return the identity in the fields of a JSON object; None if it contains none."""
    if not isinstance(fields, dict):
        return None
    try:
        return Identity(
            int(fields["pid"]),
            int(fields["start_ticks"]),
            str(fields["boot_id"]),
            str(fields.get("machine_id", "")),
            int(fields.get("pid_namespace", 0)),
            int(fields.get("uid", -1)),
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


@functools.cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def pid_namespace() -> int:
    """Return the number of this process's pid namespace."""
    return Path("/proc/self/ns/pid").stat().st_ino


@functools.cache
def machine_id() -> str:
    """Return an id that stays the same after a reboot and differs between machines; without a system id, of this boot.

    Copies of one disk image share the system's id, so the host name is part of it. The system's id should not leave
    the machine, so only a hash is recorded.
    """
    for place in _MACHINE_IDS:
        try:
            if text := place.read_text(encoding="ascii").strip():
                break
        except (OSError, UnicodeDecodeError):
            continue
    else:
        text = boot_id()
    return hashlib.sha256(f"onceproof {text} {os.uname().nodename}".encode()).hexdigest()[:32]
