"""list the faults: what each does, how, and what that needs

`--markdown` prints docs/faults.md, with the effects that the suite measured.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON list")
    form.add_argument("--markdown", action="store_true", help="print the document")


def run(args: argparse.Namespace) -> int:
    """Prints the family."""
    from harness.fault_catalogue import as_json, as_markdown, as_table, family

    told = family()
    print(as_json(told) if args.json else as_markdown(told) if args.markdown else as_table(told))
    return 0
