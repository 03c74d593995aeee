"""The preparation of a command's first run: check the folders, sweep leftovers, install missing tools."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands._outputs import checked, try_writing
from harness.errors import UsageError
from harness.runtime.environment import need_open_files

if TYPE_CHECKING:
    from harness.provision.background_archive import Making


def prepare(args: argparse.Namespace, note: Callable[[str], None]) -> Making | None:
    """Undo and sweep leftovers of crashed runs and install missing tools; return Spark's class archive in the making."""
    from harness import provision
    from harness.clusters.base.abandoned_clusters import sweep_stale
    from harness.clusters.containers.leftovers import sweep_containers
    from harness.clusters.external.undo import undo_left
    from harness.processes import ownership
    from harness.provision.background_archive import make_in_background

    need_open_files()
    _must_be_writable(args.runs, args.report or args.runs / "report.html")
    undo_left(note)
    for swept in (*ownership.sweep(args.runs), *sweep_containers()):
        note(swept)
    sweep_stale()  # whatever kind of cluster is started now
    if args.cluster == "existing":
        provision.java(note)  # for reconciling; nothing is started
    else:
        provision.ensure_all(note)
    return make_in_background(note)


def _must_be_writable(runs: Path, report: Path) -> None:
    """Raise UsageError before anything starts if run folders or the report cannot be written."""
    with checked("--runs", runs, "folder"):
        str(runs.absolute()).encode()  # JSON and the report can only contain a UTF-8 path
        try_writing(runs)
    if report.suffix == ".json" or report.is_dir():
        raise UsageError(f"--report {report}: give the name of an HTML file, e.g. report.html")
    with checked("--report", report, "file"):
        try_writing(report.parent)  # the report is written beside its final place, then renamed
