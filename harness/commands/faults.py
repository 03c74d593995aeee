"""list the faults: what each does, the ways to do it and their requirements

`--markdown` prints docs/faults.md, with the effects that the suite measured.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON list")
    form.add_argument("--markdown", action="store_true", help="print docs/faults.md")


def run(args: argparse.Namespace) -> int:
    """Print the catalogue of faults."""
    from harness.fault_catalogue import as_json, as_markdown, as_table, catalogue

    faults = catalogue()
    print(as_json(faults) if args.json else as_markdown(faults) if args.markdown else as_table(faults))
    return 0
