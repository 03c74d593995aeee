"""Client library versions of workers: the environment that selects one, and the versions that a run really loaded."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from harness.ledger.reading import read_events
from harness.ledger.rundir import RunDir
from harness.provision.client import client_overlay


def environment(version: str) -> dict[str, str]:
    """Return the environment variables that make a worker load this version; empty: the installed one."""
    overlay = client_overlay(version) if version else None
    if overlay is None:
        return {}
    return {"PYTHONPATH": os.pathsep.join([str(overlay), *filter(None, [os.environ.get("PYTHONPATH")])])}


def loaded(run: RunDir, workers: Collection[str]) -> dict[str, str]:
    """Return the version of each library that these workers reported; several, joined by commas, where they differ."""
    found: dict[str, set[str]] = {}
    for path in sorted(run.ledger.glob("*.events")):
        if path.stem.rpartition(".")[0] not in workers:  # NAME.INCARNATION
            continue
        for event in read_events(path):
            reported: Mapping[str, str] = event["versions"] if event["event"] == "library" else {}
            for library, version in reported.items():
                found.setdefault(library, set()).add(version)
    return {library: ", ".join(sorted(versions)) for library, versions in found.items()}
