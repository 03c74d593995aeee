"""say what this machine can do, why, and what that enables

Looks only, installs nothing. Exit codes: 0 when `prove` can run here or everything missing for it can be
fetched, 2 when it cannot.
"""

from __future__ import annotations

import argparse

from harness.runtime import exits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the facts."""
    from harness.machine.doctor import as_json, as_table, can_prove, facts

    found = facts()
    print(as_json(found) if args.json else as_table(found))
    return exits.AS_PROMISED if can_prove(found) else exits.BAD_USE
