"""Nodes of a user's cluster: their powers are the commands that the user configured, and every effect is observed.

A command's exit code is never enough: a node is killed when its port no longer answers, and back when it answers and lists
itself among the brokers. Each use is recorded first (harness.clusters.external.held_powers), until the node is seen to be back.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from harness.clusters.external.held_powers import Held, Uses
from harness.clusters.external.power_commands import Commands
from harness.clusters.links.mesh import Member
from harness.contracts import POWERS, Killable, Pausable, Stoppable
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.kafka.protocol import raw_client
from harness.waiting import wait_until

T = TypeVar("T")


ASK_LIMIT_S = 5.0


_CONNECT_LIMIT_S = 2.0


@dataclass(frozen=True)
class Limits:
    """Limits for the effects of commands, in seconds."""

    gone_s: float = 15.0
    resumed_s: float = 30.0
    back_s: float = 120.0


LIMITS = Limits()


_COMMANDS: Mapping[type, str] = {
    Killable: "kill and restart",
    Stoppable: "shut_down",
    Pausable: "pause and resume",
}


LACKS: Mapping[type, str] = {
    power: f"--powers FILE.toml gives it to nodes by the commands {_COMMANDS[power]}"
    if power in _COMMANDS
    else "no command gives it; use a cluster that onceproof starts"
    for power in POWERS
}


class CommandedNode:
    """A broker or controller without powers. `control` is None for a controller that clients cannot reach."""

    lacks: ClassVar[Mapping[type, str]] = LACKS

    def __init__(
        self,
        member: Member,
        control: raw_client.Address | None,
        commands: Commands,
        report: Callable[[str], None],
        limits: Limits = LIMITS,
    ) -> None:
        self.member = member
        self._control = control
        self._commands = commands
        self._report = report
        self._limits = limits
        self.uses: Uses | None = None  # records powers in use
        self._held: dict[str, Held] = {}  # by power

    def __repr__(self) -> str:
        return f"<{self.name} {self._control}>"

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def powers(self) -> list[str]:
        """Return the powers that have commands."""
        return list(self._commands.lines)

    @property
    def command_limit_s(self) -> float:
        return self._commands.limit_s

    @property
    def control(self) -> raw_client.Address:
        if self._control is None:
            raise ClusterError(f"{self.name} has no listener for clients")
        return self._control

    def metadata(self, *topics: str) -> raw_client.Metadata:
        return raw_client.metadata(self.control, topics, ASK_LIMIT_S)

    def running(self) -> bool:
        """Return whether its port accepts connections; without an open port, ask the command."""
        if self._control is not None:
            with suppress(OSError), socket.create_connection(self._control, _CONNECT_LIMIT_S):
                return True
        return "running" in self._commands.lines and self._run("running") == 0

    def paused(self) -> bool:
        """Ask the command; without one, a node is paused if its port accepts connections but never answers."""
        if "paused" in self._commands.lines:
            return self._run("paused") == 0
        try:
            raw_client.api_versions(self.control, ASK_LIMIT_S)
        except raw_client.UnansweredError:
            return True
        except ClusterError:
            return False
        return False

    def residue(self) -> list[str]:
        return []

    def bring_back(self) -> None:
        """Undo the powers that are still in use; without effect on a node as it was."""

    def _use(self, power: str, act: Callable[[], T]) -> T:
        """Record that the power is in use, then use it."""
        if self.uses is not None and power not in self._held:
            self._held[power] = self.uses.begin(power, self.member, self._control, self._commands)
        done = act()
        if power in self._held:
            self._held[power].commanded()
        return done

    def _back(self, power: str) -> None:
        if power in self._held:
            self._held.pop(power).undone()

    def _run(self, power: str) -> int:
        return self._commands.run(power, self.name, self._report)

    def _must(self, power: str) -> None:
        if code := self._run(power):
            raise FaultError(f"{power} of {self.name} failed with code {code}: {self._commands.shown(power)}")

    def _wait_gone(self, limit_s: float) -> bool:
        try:
            wait_until(lambda: not self.running(), limit_s, "")
        except WaitTimeout:
            return False
        return True

    def _takes_part(self) -> bool:
        if self._control is None:
            return self.running()
        try:
            return self.member.id in self.metadata().brokers
        except raw_client.WireError:
            return False
