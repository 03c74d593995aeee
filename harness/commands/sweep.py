"""end what crashed runs left behind (every start does this by itself)"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="where run folders are (default: runs)"
    )


def run(args: argparse.Namespace) -> int:
    from harness.clusters._containers_left import sweep_containers
    from harness.clusters._stale import sweep_stale
    from harness.owned import sweep

    swept = [*sweep(args.runs), *sweep_containers()]
    swept += [f"{folder}: removed the data of a cluster whose harness was killed" for folder in sweep_stale()]
    print("\n".join(swept) or "nothing to sweep")
    return 0
