"""Folders whose processes belong to one harness process, so that what a crash left can be told from what runs.

`owner.json` names the harness; the other pid files below the folder name what it started. The kernel ends
those with their parent (harness.tether); sweeping is the second net, for what slipped through and for data.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from harness import tether

OWNER = "owner.json"  # not *.pid: those are swept, and the owner of a folder may be who sweeps it
CLUSTERS = ".clusters"


def own(folder: Path) -> None:
    """Say that this process uses the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = tether.identify(os.getpid())
    assert identity is not None
    (folder / OWNER).write_text(json.dumps(vars(identity)) + "\n", encoding="ascii")


def disown(folder: Path) -> None:
    """Say that this process is done with it; its pid files mean nothing any more."""
    for pidfile in [*folder.rglob("*.pid"), folder / OWNER]:
        pidfile.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Delete an owned folder; what should be kept of it was collected before."""
    shutil.rmtree(folder, ignore_errors=True)


def new_cluster_folder(runs: Path) -> Path:
    """A folder for a cluster of this process; several may be alive side by side."""
    number = 0
    while (folder := runs / CLUSTERS / f"{os.getpid()}-{number}").exists():
        number += 1
    own(folder)
    return folder


def sweep(runs: Path) -> list[str]:
    """End what dead harness processes left running below `runs`, delete their clusters' data; says what."""
    done = []
    for owner in [*runs.glob(f"{CLUSTERS}/*/{OWNER}"), *runs.glob(f"*/*/logs/{OWNER}")]:
        identity = tether.read_pidfile(owner)
        if identity is not None and identity.alive():
            continue
        folder = owner.parent
        ended = tether.sweep(folder)
        owner.unlink()
        if folder.parent.name == CLUSTERS:
            for data in folder.glob("*/data"):  # the logs may tell why it crashed: they stay
                shutil.rmtree(data, ignore_errors=True)
        done.append(f"{folder}: ended {len(ended)} process(es) of a run that had crashed")
    return done
