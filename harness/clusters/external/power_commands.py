"""Powers by configuration: the commands that kill, restart or pause the nodes of a user's cluster.

[powers]                                # for all nodes
kill = "ssh {host} sudo systemctl kill -s KILL kafka"
restart = "ssh {host} sudo systemctl start kafka"
limit_s = 60                            # for each command; default 60
shell = false                           # true: given to /bin/sh as it is

[nodes.broker-1]                        # variables and commands of one node
host = "kafka-1"
"""

from __future__ import annotations

import shlex
import string
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import FaultError, UsageError

# By command: the commands that it cannot do without.
PARTNERS: Mapping[str, tuple[str, ...]] = {
    "kill": ("restart",),
    "restart": ("kill",),
    "running": ("kill",),
    "shut_down": ("kill", "restart"),
    "pause": ("resume",),
    "resume": ("pause",),
    "paused": ("pause",),
}
# By command that has to be undone: the command that undoes it, and the one that checks whether it is undone.
UNDONE_BY: Mapping[str, tuple[str, ...]] = {"kill": ("restart", "running"), "pause": ("resume", "paused")}
GIVEN = ("node", "id", "host", "port")  # variables that every node has; variables in its table override them
_HOW = ("limit_s", "shell")
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Commands:
    """The commands of one node by power, with their variables filled in."""

    lines: Mapping[str, str | tuple[str, ...]]  # a string is for the shell
    limit_s: float = _LIMIT_S

    def run(self, power: str, node: str, report: Callable[[str], None]) -> int:
        """Run the command and return its exit code; its output goes to `report`.

        Raises FaultError when it cannot be run or does not end.
        """
        line, shown = self.lines[power], self.shown(power)
        try:
            done = subprocess.run(
                line,
                shell=isinstance(line, str),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=self.limit_s,
                check=False,
                start_new_session=True,  # a Ctrl-C at the terminal must not end the command that undoes a fault
            )
        except subprocess.TimeoutExpired as error:
            report(f"{power} of {node}: {shown} did not end within {self.limit_s:g} s: {error.stdout!r}")
            raise FaultError(f"{power} of {node} did not end within {self.limit_s:g} s: {shown}") from None
        except OSError as error:
            raise FaultError(f"{power} of {node} cannot be run: {error.strerror}: {shown}") from error
        report(f"{power} of {node}: {shown} ended with code {done.returncode}: {done.stdout.strip()}")
        return done.returncode

    def shown(self, power: str) -> str:
        line = self.lines[power]
        return line if isinstance(line, str) else shlex.join(line)


@dataclass(frozen=True)
class Powers:
    """The content of the powers file, before the nodes of the cluster are known."""

    file: Path
    commands: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limit_s: float = _LIMIT_S
    shell: bool = False

    @classmethod
    def read(cls, file: Path) -> Powers:
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"--powers {file} cannot be read: {error.strerror}") from error
        except ValueError as error:  # not TOML, or not UTF-8
            raise UsageError(f"--powers {file}: {error}") from error
        powers, nodes = tables.pop("powers", {}), tables.pop("nodes", {})
        if tables:
            raise UsageError(f"{file}: {next(iter(tables))}: unknown table; use [powers] and [nodes.NAME]")
        for name, table in (
            ("powers", powers),
            ("nodes", nodes),
            *((f"nodes.{n}", t) for n, t in nodes.items()),
        ):
            if not isinstance(table, dict):
                raise UsageError(f"{file}: {name} must be a table: [{name}]")
        for key, value in powers.items():
            _check(file, "powers", key, value)
        made = cls(
            file,
            {key: value for key, value in powers.items() if key in PARTNERS},
            nodes,
            powers.get("limit_s", _LIMIT_S),
            powers.get("shell", False),
        )
        made._check_nodes()
        return made

    def of(self, node: str, given: Mapping[str, object]) -> Commands:
        """Return the commands of one node; `given` are the variables in GIVEN, as the cluster reports them."""
        own = self.nodes.get(node, {})
        wanted = {**self.commands, **{key: value for key, value in own.items() if key in PARTNERS}}
        variables = {**given, **{key: value for key, value in own.items() if key not in PARTNERS}}
        lines: dict[str, str | tuple[str, ...]] = {}
        for power, line in wanted.items():
            where = f"nodes.{node}" if power in own else "powers"
            for needed in PARTNERS[power]:
                if needed not in wanted:
                    raise UsageError(f"{self.file}: {where}.{power} needs {needed} as well")
            lines[power] = self._filled(f"{where}.{power}", node, line, variables)
        return Commands(lines, self.limit_s)

    def must_be_nodes(self, names: list[str]) -> None:
        for name in self.nodes:
            if name not in names:
                raise UsageError(
                    f"{self.file}: nodes.{name}: the cluster has no such node; it has {', '.join(names)}"
                )

    def _filled(
        self, key: str, node: str, line: str, variables: Mapping[str, object]
    ) -> str | tuple[str, ...]:
        """Fill in the variables after splitting into words, so that a blank in a value does not split it."""
        try:
            if self.shell:
                return line.format_map(variables)
            return tuple(word.format_map(variables) for word in shlex.split(line))
        except KeyError as error:
            raise UsageError(
                f"{self.file}: {key}: unknown placeholder {{{error.args[0]}}}; available: {', '.join(GIVEN)}, and the variables of [nodes.{node}]"
            ) from None
        except ValueError as error:  # quotes or braces that do not match
            raise UsageError(f"{self.file}: {key}: {error}") from None

    def _check_nodes(self) -> None:
        lines = [*self.commands.values()]
        lines += [value for own in self.nodes.values() for key, value in own.items() if key in PARTNERS]
        used = {name for line in lines for name in _variables(str(line))}
        for name, own in self.nodes.items():
            for key, value in own.items():
                if key in PARTNERS:
                    _check(self.file, f"nodes.{name}", key, value)
                elif not isinstance(value, str | int):
                    raise UsageError(
                        f"{self.file}: nodes.{name}.{key}: a variable must be a string or a whole number"
                    )
                elif key not in used:
                    raise UsageError(
                        f"{self.file}: nodes.{name}.{key}: not a power ({', '.join(PARTNERS)}), and no command uses it"
                    )


def _check(file: Path, table: str, key: str, value: object) -> None:
    if key not in (*PARTNERS, *_HOW):
        raise UsageError(f"{file}: {table}.{key}: unknown key; choose from {', '.join((*PARTNERS, *_HOW))}")
    if key in PARTNERS and (not isinstance(value, str) or not value.strip()):
        raise UsageError(f"{file}: {table}.{key}: a command must be a string")
    if key == "shell" and not isinstance(value, bool):
        raise UsageError(f"{file}: {table}.shell: must be true or false")
    if key == "limit_s" and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        raise UsageError(f"{file}: {table}.limit_s: must be a number of seconds above 0")


def _variables(line: str) -> set[str]:
    try:
        return {name for _text, name, _form, _how in string.Formatter().parse(line) if name}
    except ValueError:  # reported when the command is filled in
        return set()
