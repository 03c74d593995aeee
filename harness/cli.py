"""The command line: every file in `harness/commands` is one command of that name.

Such a file has a docstring whose first line is its help, `add_arguments(parser)` and `run(args) -> int`.
It imports heavy libraries inside `run`, so that `--help` stays quick. With `passes_rest = True` all arguments after
its name reach it unparsed as `args.rest`. `run` returns one of the exit codes in harness.runtime.exits.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

import harness
from harness import registry
from harness.runtime import environment, exits, signals

COMMANDS = "harness.commands"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. An error that users can act on is one line on stderr."""
    return exits.guarded(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def _run(arguments: list[str]) -> int:
    environment.prepare()
    signals.install()
    parser = build_parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return exits.BAD_USE
    args = parse(parser, arguments)
    code: int = args.run(args)
    return code


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; a command with `passes_rest` gets all arguments after its name, unparsed, as `rest`."""
    passing = [m.__name__.rpartition(".")[2] for m in command_modules() if getattr(m, "passes_rest", False)]
    if arguments[0] not in passing:
        args, unknown = parser.parse_known_args(arguments)
        if unknown:  # reported by the command's parser, which prints the usage of the command
            args.usage_of.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args
    args = parser.parse_args(arguments[:1])
    args.rest = list(arguments[1:])
    return args


def build_parser() -> argparse.ArgumentParser:
    """Return a parser with all commands."""
    parser = argparse.ArgumentParser(
        prog="onceproof",
        description="Tests whether a Kafka cluster and its clients lose, duplicate or reorder messages while parts of the system fail.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"onceproof {harness.__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for module in command_modules():
        name = module.__name__.rpartition(".")[2]
        purpose = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name,
            help=purpose.partition("\n")[0],
            description=purpose,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, usage_of=command)
    return parser


def command_modules() -> list[ModuleType]:
    """Return the command modules in the order of their names."""
    return [importlib.import_module(f"{COMMANDS}.{name}") for name in registry.listed(COMMANDS)]


if __name__ == "__main__":
    exits.leave(main())
