"""Folders that belong to one harness process, so that leftovers of a crash can be distinguished from folders in use.

A record in the user's cache folder names the folder and its harness. Only such a record leads to ending processes or
deleting data: run folders are shared, copied and unpacked from archives. `owner.json` in the folder says the same to
people and to other machines, and has no effect. The kernel ends the processes of a harness with it
(harness.processes.child_process); sweeping is the second line of defence, for remaining processes and for data.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.processes import child_process, real_folders
from harness.processes.identity import Identity, from_fields, own_identity, read_pidfile
from harness.runtime.cache import own_folder

OWNER = "owner.json"
CLUSTERS = ".clusters"
OWNERS = "owners"  # the list of owned folders, in the cache folder


@dataclass(frozen=True)
class FolderRecord:
    """An entry of a list in the cache folder: this harness uses this folder."""

    file: Path
    folder: Path  # absolute, without symbolic links
    inode: int  # 0: the record was written by an older version
    owner: Identity

    @classmethod
    def write(cls, kind: str, folder: Path) -> FolderRecord:
        """Record that this process uses the folder, in the list of this kind."""
        folder, owner = folder.resolve(), own_identity()
        entry = own_folder(kind) / f"{uuid.uuid4().hex}.json"
        record = cls(entry, folder, folder.stat().st_ino, owner)
        draft = entry.with_suffix(".part")
        draft.write_text(
            json.dumps({"folder": str(folder), "inode": record.inode, **vars(owner)}), encoding="utf-8"
        )
        draft.replace(entry)
        return record

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)

    def sweep(self) -> tuple[list[Identity], str]:
        """End the processes of a harness that has ended; return them, and why the folder is not the recorded one."""
        return child_process.sweep(self.folder), real_folders.doubt(self.folder, self.inode)


def records(kind: str) -> Iterator[FolderRecord]:
    """Yield the entries of a list, in any order, without torn and just removed ones."""
    for file in sorted(own_folder(kind).glob("*.json")):
        try:
            fields = json.loads(file.read_text(encoding="utf-8"))
            folder, inode = Path(fields["folder"]), int(fields.get("inode", 0))
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            continue
        if (owner := from_fields(fields)) is not None:
            yield FolderRecord(file, folder, inode, owner)


def own(folder: Path) -> None:
    """Record that this process uses the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    FolderRecord.write(OWNERS, folder)
    (folder / OWNER).write_text(json.dumps(vars(own_identity())) + "\n", encoding="ascii")


def disown(folder: Path) -> None:
    """Record that this process no longer uses the folder; its pid files become meaningless."""
    for pidfile in [*folder.rglob("*.pid"), folder / OWNER]:
        pidfile.unlink(missing_ok=True)
    _forget(folder)


def remove(folder: Path) -> None:
    """Delete an owned folder, after everything to keep was collected."""
    shutil.rmtree(folder, ignore_errors=True)
    _forget(folder)


def new_cluster_folder(runs: Path) -> Path:
    """Make a folder for a cluster of this process; several may exist at the same time."""
    number = 0
    while (folder := runs / CLUSTERS / f"{os.getpid()}-{number}").exists():
        number += 1
    own(folder)
    return folder


def sweep(runs: Path) -> list[str]:
    """End the processes that ended harnesses of this user and machine left below `runs`, and delete their clusters' data.

    Returns what was done. What may belong to another machine, container or user is left alone (`left_below`).
    """
    done, top = [], runs.resolve()
    for record in records(OWNERS):
        folder = record.folder
        if not folder.is_relative_to(top) or not record.owner.ended():
            continue
        ended, doubt = record.sweep()
        record.remove()
        if doubt:
            continue  # the folder was removed, or replaced by another one
        (folder / OWNER).unlink(missing_ok=True)
        if folder.parent.name == CLUSTERS:
            real_folders.clear_data(folder, record.inode)  # the logs stay, as they may show why it crashed
        done.append(f"{folder}: ended {len(ended)} process(es) of a run that had crashed")
    return done


def left_below(runs: Path) -> list[str]:
    """List the owned folders below `runs` that `sweep` leaves alone although no process of this machine uses them."""
    left, known, top = [], set(), runs.resolve()
    for record in records(OWNERS):
        if record.folder.is_relative_to(top):
            known.add(record.folder)
            if reason := record.owner.foreign():
                left.append(_left(record.folder, reason, record.folder, record.file))
    for file in [*top.glob(f"{CLUSTERS}/*/{OWNER}"), *top.glob(f"*/*/logs/{OWNER}")]:
        folder = file.parent
        if folder in known:
            continue
        owner = None if file.is_symlink() else read_pidfile(file)
        if owner is None:
            reason = f"its {OWNER} cannot be read"
        elif not (reason := owner.foreign()):
            reason = "no record of it is in the cache folder of this user"
        left.append(_left(folder, reason, folder if folder.parent.name == CLUSTERS else file))
    return left


def left_of(kind: str) -> list[str]:
    """List the entries of a list in the cache folder that sweeping leaves alone, one line each."""
    return [
        _left(record.folder, reason, record.folder, record.file)
        for record in records(kind)
        if (reason := record.owner.foreign())
    ]


def _left(folder: Path, reason: str, *removed: Path) -> str:
    return f"{folder}: left alone, {reason}; if nothing uses it: rm -r {' '.join(map(str, removed))}"


def _forget(folder: Path) -> None:
    """Remove the records of this process for the folder."""
    folder, here = folder.resolve(), own_identity()
    with suppress(OSError):
        for record in records(OWNERS):
            if record.folder == folder and record.owner == here:
                record.remove()
