"""end what crashed runs left behind (every start does this by itself)"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.connection import TOPIC_PREFIX


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run folders are (default: runs)"
    )
    existing = parser.add_argument_group("a cluster that runs already")
    existing.add_argument(
        "--bootstrap", metavar="HOST:PORT,…", help="delete all topics and groups with the prefix there"
    )
    existing.add_argument("--client-config", metavar="FILE", type=Path, help="what clients need to get in")
    existing.add_argument(
        "--prefix", default=TOPIC_PREFIX, help=f"of what is deleted (default: {TOPIC_PREFIX})"
    )


def run(args: argparse.Namespace) -> int:
    from harness.clusters._containers_left import sweep_containers
    from harness.clusters._stale import sweep_stale
    from harness.clusters._undo import undo_left
    from harness.owned import sweep

    swept: list[str] = []
    undo_left(swept.append)
    swept += [*sweep(args.runs), *sweep_containers()]
    swept += [f"{folder}: removed the data of a cluster whose harness was killed" for folder in sweep_stale()]
    if args.bootstrap:
        swept += _on_existing(args)
    print("\n".join(swept) or "nothing to sweep")
    return 0


def _on_existing(args: argparse.Namespace) -> list[str]:
    from harness.clusters.existing import ExistingCluster

    cluster = ExistingCluster(
        args.runs, bootstrap=args.bootstrap, client_config=args.client_config, prefix=args.prefix
    )
    return [f"deleted {what}" for what in cluster.sweep()]
