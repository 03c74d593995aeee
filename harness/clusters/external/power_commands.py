"""Powers by configuration: which commands kill, restart or pause which node of a cluster that is not ours.

[powers]                                # for all nodes
kill = "ssh {host} sudo systemctl kill -s KILL kafka"
restart = "ssh {host} sudo systemctl start kafka"
limit_s = 60                            # for each command; default 60
shell = false                           # true: given to /bin/sh as it is

[nodes.broker-1]                        # variables of a node, and commands of its own
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

# By command: those that are of no use without it.
PARTNERS: Mapping[str, tuple[str, ...]] = {
    "kill": ("restart",),
    "restart": ("kill",),
    "running": ("kill",),
    "shut_down": ("kill", "restart"),
    "pause": ("resume",),
    "resume": ("pause",),
    "paused": ("pause",),
}
GIVEN = ("node", "id", "host", "port")  # variables that every node has; a node's own win
_HOW = ("limit_s", "shell")
_LIMIT_S = 60.0


@dataclass(frozen=True)
class Commands:
    """What can be done to one node: commands by power, with their variables filled in."""

    lines: Mapping[str, str | tuple[str, ...]]  # a text is for the shell
    limit_s: float = _LIMIT_S

    def run(self, power: str, node: str, tell: Callable[[str], None]) -> int:
        """Its exit code; what it printed goes to `tell`. Raises FaultError when it cannot be run or does not end."""
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
            tell(f"{power} of {node}: {shown} did not end within {self.limit_s:g} s: {error.stdout!r}")
            raise FaultError(f"{power} of {node} did not end within {self.limit_s:g} s: {shown}") from None
        except OSError as error:
            raise FaultError(f"{power} of {node} cannot be run: {error.strerror}: {shown}") from error
        tell(f"{power} of {node}: {shown} ended with code {done.returncode}: {done.stdout.strip()}")
        return done.returncode

    def shown(self, power: str) -> str:
        line = self.lines[power]
        return line if isinstance(line, str) else shlex.join(line)


@dataclass(frozen=True)
class Powers:
    """What the file says, before it is known which nodes there are."""

    file: Path
    commands: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limit_s: float = _LIMIT_S
    shell: bool = False

    @classmethod
    def read(cls, file: Path) -> Powers:
        try:
            told = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"--powers {file} cannot be read: {error.strerror}") from error
        except ValueError as error:  # no TOML, or no UTF-8
            raise UsageError(f"--powers {file}: {error}") from error
        powers, nodes = told.pop("powers", {}), told.pop("nodes", {})
        if told:
            raise UsageError(f"{file}: {next(iter(told))}: there are [powers] and [nodes.NAME]")
        for name, table in (
            ("powers", powers),
            ("nodes", nodes),
            *((f"nodes.{n}", t) for n, t in nodes.items()),
        ):
            if not isinstance(table, dict):
                raise UsageError(f"{file}: {name} is a table: [{name}]")
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
        """The commands of one node; `given` are the variables that the cluster tells: GIVEN."""
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
                    f"{self.file}: nodes.{name}: the cluster has no such node, but {', '.join(names)}"
                )

    def _filled(
        self, key: str, node: str, line: str, variables: Mapping[str, object]
    ) -> str | tuple[str, ...]:
        """Words are told apart before they are filled in, so that a blank in a value stays where it is."""
        try:
            if self.shell:
                return line.format_map(variables)
            return tuple(word.format_map(variables) for word in shlex.split(line))
        except KeyError as error:
            raise UsageError(
                f"{self.file}: {key}: {{{error.args[0]}}} is none of {', '.join(GIVEN)}, and no variable of nodes.{node}"
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
                        f"{self.file}: nodes.{name}.{key}: a variable is a text or a whole number"
                    )
                elif key not in used:
                    raise UsageError(
                        f"{self.file}: nodes.{name}.{key} is no power ({', '.join(PARTNERS)}), and no command uses it"
                    )


def _check(file: Path, table: str, key: str, value: object) -> None:
    if key not in (*PARTNERS, *_HOW):
        raise UsageError(f"{file}: {table}.{key}: there are {', '.join((*PARTNERS, *_HOW))}")
    if key in PARTNERS and (not isinstance(value, str) or not value.strip()):
        raise UsageError(f"{file}: {table}.{key}: a command is a text")
    if key == "shell" and not isinstance(value, bool):
        raise UsageError(f"{file}: {table}.shell: true or false")
    if key == "limit_s" and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        raise UsageError(f"{file}: {table}.limit_s: a number of seconds above 0")


def _variables(line: str) -> set[str]:
    try:
        return {name for _text, name, _form, _how in string.Formatter().parse(line) if name}
    except ValueError:  # told when the command is filled in
        return set()
