"""Clusters whose harness was killed: found at the next start, wherever their folder was.

Their processes have died with the harness, as a rule; what is left is a folder with the data of all brokers.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

from harness import tether
from harness.clocks import sweep_shared_memory
from harness.clusters._control_group import sweep_groups
from harness.provision.cache import cache_dir
from harness.provision.engine_place import sweep_engines

_MARK = "onceproof-cluster"  # a folder without it is not ours, whatever a list says


class Registration:
    """The entry of one cluster in the list of this user's clusters, from its start to its stop."""

    def __init__(self, folder: Path) -> None:
        (folder / _MARK).touch()
        owner = tether.identify(os.getpid())
        assert owner is not None
        self._entry = _list() / f"{uuid.uuid4().hex}.json"
        partial = self._entry.with_suffix(".part")
        partial.write_text(json.dumps({"folder": str(folder), **owner.__dict__}), encoding="utf-8")
        partial.replace(self._entry)

    def remove(self) -> None:
        self._entry.unlink(missing_ok=True)


def sweep_stale() -> list[Path]:
    """End and clear the clusters whose harness is gone; their logs stay. Returns their folders."""
    swept: list[Path] = []
    for entry in sorted(_list().glob("*.json")):
        try:
            told = json.loads(entry.read_text(encoding="utf-8"))
            owner = tether.Identity(told["pid"], told["start_ticks"], told["boot_id"])
            folder = Path(told["folder"])
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            continue  # another start has just taken it
        if owner.alive():
            continue
        if (folder / _MARK).is_file():
            tether.sweep(folder)
            clear(folder)
            swept.append(folder)
        entry.unlink(missing_ok=True)
    sweep_groups()
    sweep_shared_memory()
    sweep_engines()
    return swept


def clear(folder: Path) -> None:
    """Remove what the brokers stored and leave what they told."""
    for data in folder.glob("*/data"):
        shutil.rmtree(data, ignore_errors=True)


def _list() -> Path:
    folder = cache_dir() / "clusters"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
