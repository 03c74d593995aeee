"""The processes that each harness of this user started, listed in the user's own cache folder.

A pid file in a run folder may come from anywhere, such as an unpacked archive. So after a crash only the processes in
these lists are ended. A list has one writer: its first line is the harness, each other line a process.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from harness.processes.identity import Identity, from_fields, own_identity

LISTS = "started"
_lock = threading.Lock()


def note(pidfile: Path, process: Identity) -> None:
    """Add a process of this harness to its list; `pidfile` is the file that people read."""
    owner = own_identity()
    file = _folder() / f"{owner.pid}-{owner.start_ticks}-{owner.pid_namespace}-{owner.machine_id[:8]}.jsonl"
    line = _line({"pidfile": str(pidfile), **vars(process)})
    with _lock:
        first = b""
        if not file.exists():
            first = _line(vars(owner))
            atexit.register(_forget, file, owner)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        end = os.open(file, flags, 0o600)
        try:
            os.write(end, first + line)
        finally:
            os.close(end)


def _forget(file: Path, owner: Identity) -> None:
    """Remove the list at the end of its harness, unless a process still runs: then the next sweep reads it."""
    if os.getpid() != owner.pid:
        return  # this process is a fork of the harness
    for listed, _owner, processes in _lists(file.parent):
        if listed == file and not any(process.alive() for _, process in processes):
            file.unlink(missing_ok=True)


def below(folder: Path) -> list[tuple[Path, Identity]]:
    """Return the listed processes with a pid file below `folder`, of this harness and of certainly ended ones."""
    top, here = folder.resolve(), own_identity()
    return [
        (pidfile, process)
        for _file, owner, processes in _lists(_folder())
        if owner == here or owner.ended()
        for pidfile, process in processes
        if pidfile.is_relative_to(top)
    ]


def tidy() -> None:
    """Remove the lists of harnesses that have ended and left nothing running."""
    for file, owner, processes in _lists(_folder()):
        if owner.ended() and not any(process.alive() for _, process in processes):
            file.unlink(missing_ok=True)


def _lists(folder: Path) -> Iterator[tuple[Path, Identity, list[tuple[Path, Identity]]]]:
    for file in sorted(folder.glob("*.jsonl")):
        try:
            owner, *processes = [_fields(line) for line in file.read_bytes().splitlines()]
        except (FileNotFoundError, ValueError):  # another start has just removed the list, or it is empty
            continue
        identity = from_fields(owner)
        if identity is not None:
            named = [(Path(str(p.get("pidfile"))), from_fields(p)) for p in processes]
            yield file, identity, [(pidfile, process) for pidfile, process in named if process is not None]


def _fields(line: bytes) -> dict[str, object]:
    """Return the fields of a line; empty for a torn line."""
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _folder() -> Path:
    from harness.runtime.cache import own_folder  # which imports all of provisioning, and that imports tether

    return own_folder(LISTS)
