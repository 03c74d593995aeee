"""Clusters whose harness was killed: found at the next start, wherever their folder was.

Their processes have usually died with the harness; what remains is a folder with the data of all brokers.
"""

from __future__ import annotations

from pathlib import Path

from harness.machine.cgroup import sweep_groups
from harness.machine.fake_clock import sweep_shared_memory
from harness.processes import real_folders
from harness.processes.ownership import FolderRecord, left_of, records
from harness.provision.docker.engine_folders import sweep_engines

LIST = "clusters"  # list of this user's clusters, in the cache folder
_MARK = (
    "onceproof-cluster"  # a folder without this file is not a cluster of onceproof, even if the list names it
)


class Registration:
    """The entry of one cluster in the list of this user's clusters, from its start to its stop."""

    def __init__(self, folder: Path) -> None:
        (folder / _MARK).touch()
        self._record = FolderRecord.write(LIST, folder)

    def remove(self) -> None:
        self._record.remove()


def sweep_stale() -> list[Path]:
    """End and clear the clusters whose harness has ended, but keep their logs; return their folders.

    Clusters of another machine, container or user are left alone (`left_stale`), whether they run or not.
    """
    swept: list[Path] = []
    for record in records(LIST):
        if not record.owner.ended():
            continue
        _ended, doubt = record.sweep()
        if not doubt and (record.folder / _MARK).is_file():
            real_folders.clear_data(record.folder, record.inode)
            swept.append(record.folder)
        record.remove()
    sweep_groups()
    sweep_shared_memory()
    sweep_engines()
    return swept


def left_stale() -> list[str]:
    """List the clusters that `sweep_stale` leaves alone, each with the reason and the command that removes it."""
    return left_of(LIST)


def clear(folder: Path) -> None:
    """Remove the data of the brokers and keep their logs."""
    real_folders.clear_data(folder.resolve())
