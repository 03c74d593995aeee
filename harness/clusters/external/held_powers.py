"""Powers in use on nodes of a user's cluster, recorded before their commands run.

A broker that a command paused or killed does not come back when its harness dies. So each use is a file in the cache folder,
from before the command until the node was seen to be back; the next start on this machine undoes what a dead harness left.

The file contains the undo commands as they are run, so only its owner can read it. A command that contains a secret of the
client configuration is not recorded; it is read again from the powers file.
"""

from __future__ import annotations

import json
import os
import stat
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.clusters.external.power_commands import UNDONE_BY
from harness.processes import child_process
from harness.runtime.cache import own_folder

VERSION = 1
Line = str | tuple[str, ...]


@dataclass(frozen=True)
class Use:
    """One power in use on one node."""

    power: str
    node: str
    id: int
    broker: bool
    controller: bool
    place: tuple[str, int] | None  # address for clients
    lines: Mapping[str, Line] | None  # None: they contain a secret
    limit_s: float
    bootstrap: str
    powers: str  # the file
    client_config: str | None
    began: str
    commanded: bool = False  # its command has ended


class Held:
    """The file of one use, written by the process that uses the power."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self._file = _folder() / f"{uuid.uuid4().hex}.json"
        self._write(use)

    def commanded(self) -> None:
        """Record that the command has ended and can have no later effect."""
        self._use = Use(**{**vars(self._use), "commanded": True})
        self._write(self._use)

    def undone(self) -> None:
        self._file.unlink(missing_ok=True)

    def _write(self, use: Use) -> None:
        """Write the file atomically, and flush it to disk before returning."""
        owner = child_process.identify(os.getpid())
        assert owner is not None
        draft = self._file.with_suffix(".part")
        text = json.dumps({"version": VERSION, **vars(use), **vars(owner)})
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@dataclass(frozen=True)
class Uses:
    """The uses of one session on a cluster, with the fields that their files share."""

    bootstrap: str
    powers: Path
    client_config: Path | None = None
    secrets: Sequence[str] = field(default=(), repr=False)

    def begin(self, power: str, member: Any, place: tuple[str, int] | None, commands: Any) -> Held:
        lines = {name: commands.lines[name] for name in UNDONE_BY[power] if name in commands.lines}
        secret = any(secret in commands.shown(name) for name in lines for secret in self.secrets if secret)
        return Held(
            Use(
                power=power,
                node=member.name,
                id=member.id,
                broker=member.broker,
                controller=member.controller,
                place=(place[0], place[1]) if place is not None else None,
                lines=None if secret else lines,
                limit_s=commands.limit_s,
                bootstrap=self.bootstrap,
                powers=str(self.powers.absolute()),
                client_config=str(self.client_config.absolute()) if self.client_config is not None else None,
                began=time.strftime("%Y-%m-%d %H:%M:%S"),
            )
        )


def left(say: Callable[[str], None]) -> dict[Path, Use]:
    """Return the uses that dead harnesses of this machine left; report unreadable files with `say` and keep them."""
    dead: dict[Path, Use] = {}
    alive: set[tuple[str, str]] = set()
    for file in sorted(_folder().glob("*.json")):
        try:
            owner, use = _read(file)
        except FileNotFoundError:
            continue  # its owner has just removed it
        except (OSError, ValueError, KeyError, TypeError) as error:
            say(
                f"{file}: the record of a killed run cannot be read ({type(error).__name__}: {error}): left in place; "
                "remove it when no broker is paused or down"
            )
            continue
        if owner.ended():
            dead[file] = use
        else:  # its harness runs, or is of another machine or container, where only its own next start can check
            alive.add((use.bootstrap, use.node))
    # A running harness that uses the same node brings it back itself.
    return {file: use for file, use in dead.items() if (use.bootstrap, use.node) not in alive}


def _read(file: Path) -> tuple[child_process.Identity, Use]:
    """Read the owner and the use. The commands will be run, so only this user may have written the file."""
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise ValueError("the file must belong to this user and be writable only by this user")
    record = json.loads(file.read_text(encoding="ascii"))
    owner = child_process.read_pidfile(file)
    if owner is None or record["version"] != VERSION or record["power"] not in UNDONE_BY:
        raise ValueError("not a record of this version")
    fields = {name: record[name] for name in Use.__dataclass_fields__}
    lines, place = fields["lines"], fields["place"]
    if lines is not None:
        fields["lines"] = {name: _line(line) for name, line in lines.items()}
    fields["place"] = (str(place[0]), int(place[1])) if place is not None else None
    fields["limit_s"] = float(fields["limit_s"])
    return owner, Use(**fields)


def _line(value: Any) -> Line:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError("a command must be a string or a list of strings")
    return tuple(value)


def _folder() -> Path:
    """Return the folder, which only this user can access: commands in it are run."""
    return own_folder("held")
