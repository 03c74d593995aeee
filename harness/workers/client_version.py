"""Which client libraries the workers of a run really loaded, and how another version than the installed one is given."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from harness.ledger.journal import read_events
from harness.ledger.rundir import RunDir
from harness.provision.client import client_overlay


def environment(version: str) -> dict[str, str]:
    """What a worker needs in its environment to load this version; empty: the one that is installed."""
    overlay = client_overlay(version) if version else None
    if overlay is None:
        return {}
    return {"PYTHONPATH": os.pathsep.join([str(overlay), *filter(None, [os.environ.get("PYTHONPATH")])])}


def loaded(run: RunDir, workers: Collection[str]) -> dict[str, str]:
    """By library: its version as these workers told it; several, where they differ."""
    found: dict[str, set[str]] = {}
    for path in sorted(run.ledger.glob("*.events")):
        if path.stem.rpartition(".")[0] not in workers:  # NAME.INCARNATION
            continue
        for event in read_events(path):
            told: Mapping[str, str] = event["versions"] if event["event"] == "library" else {}
            for library, version in told.items():
                found.setdefault(library, set()).add(version)
    return {library: ", ".join(sorted(versions)) for library, versions in found.items()}
