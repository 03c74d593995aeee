"""clean up after crashed runs (every start does this, too)

Removes only leftovers of this machine, this user and this pid namespace; lists the others, with the reason.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.kafka.connection import TOPIC_PREFIX

DEFAULT_RUNS = Path("runs")
# At least three letters or digits, and a dash at the end: long enough not to match unrelated names.
_PREFIX = re.compile(r"(?=(?:[._-]*[A-Za-z0-9]){3})[A-Za-z0-9][A-Za-z0-9._-]{2,58}-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=Path,
        help=f"folder that contains the run folders (default: {DEFAULT_RUNS}, if it exists)",
    )
    existing = parser.add_argument_group("a cluster that runs already")
    existing.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,…",
        help="delete all topics and groups with the prefix on the cluster at these addresses",
    )
    existing.add_argument(
        "--client-config",
        metavar="FILE",
        type=Path,
        help="properties file with the clients' security settings",
    )
    existing.add_argument(
        "--prefix",
        default=TOPIC_PREFIX,
        help=f"delete only topics and groups with this prefix, which ends with a dash (default: {TOPIC_PREFIX})",
    )
    existing.add_argument("--yes", action="store_true", help="delete without asking")


def run(args: argparse.Namespace) -> int:
    from harness.clusters.base.abandoned_clusters import left_stale, sweep_stale
    from harness.clusters.containers.leftovers import sweep_containers
    from harness.clusters.external.created_objects import left
    from harness.clusters.external.undo import undo_left
    from harness.processes.ownership import left_below, sweep

    runs = args.runs or DEFAULT_RUNS
    if args.runs is not None and not args.runs.is_dir():
        reason = "not a folder" if args.runs.exists() else "folder does not exist"
        raise UsageError(f"--runs {args.runs}: {reason}; name the folder that contains the run folders")
    if args.bootstrap and not _PREFIX.fullmatch(args.prefix):
        raise UsageError(
            f"--prefix {args.prefix}: use 4 to 60 letters, digits, dots, _ or -, with a letter or digit first, a dash at the "
            f"end and at least three letters or digits, e.g. {TOPIC_PREFIX}"
        )
    swept: list[str] = []
    undo_left(swept.append)
    swept += [*sweep(runs), *sweep_containers()]
    swept += [f"{folder}: removed the data of a cluster whose harness was killed" for folder in sweep_stale()]
    swept += [*left_below(runs), *left_stale(), *left()]
    print("\n".join(swept) or "nothing to sweep", flush=True)
    if args.bootstrap:
        deleted = _on_existing(args)
        print("\n".join(deleted) or f"nothing was deleted on {args.bootstrap}")
    return 0


def _on_existing(args: argparse.Namespace) -> list[str]:
    from harness.clusters.existing import ExistingCluster

    with tempfile.TemporaryDirectory(prefix="onceproof-sweep-") as scratch:
        cluster = ExistingCluster(
            Path(scratch), bootstrap=args.bootstrap, client_config=args.client_config, prefix=args.prefix
        )
        return [f"deleted {what}" for what in cluster.sweep(lambda names: _agreed(names, args))]


def _agreed(names: Sequence[str], args: argparse.Namespace) -> bool:
    """Return True for `--yes`, else list the names and ask the user. Raises UsageError if stdin is not a terminal."""
    if args.yes:
        return True
    print(f"on {args.bootstrap}, topics and groups that would be deleted:")
    print("\n".join(f"  {name}" for name in names), flush=True)
    if not sys.stdin.isatty():
        raise UsageError(
            f"{len(names)} topics and groups were listed, none was deleted; use --yes to delete them"
        )
    return input(f"delete these {len(names)} topics and groups? [y/N] ").strip().lower() in ("y", "yes")
