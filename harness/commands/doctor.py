"""report what this machine can do, why, and what that enables

Installs nothing. Exit codes: 0 if `prove` can run here, after an automatic installation if need be; 2 if it cannot.
"""

from __future__ import annotations

import argparse

from harness.runtime import exits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the facts."""
    from harness.machine.doctor import as_json, as_table, can_prove, facts

    found = facts()
    print(as_json(found) if args.json else as_table(found))
    return exits.AS_PROMISED if can_prove(found) else exits.BAD_USE
