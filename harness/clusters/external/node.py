"""Nodes of a user's cluster: their powers are the commands that the user configured, and every effect is observed.

A command's exit code is never enough: a node is killed when its port no longer answers, and back when it answers and lists
itself among the brokers. Each use is recorded first (harness.clusters.external.held_powers), until the node is seen to be back.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
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
_GONE_LIMIT_S = 15.0
_RESUMED_LIMIT_S = 30.0
_BACK_LIMIT_S = 120.0


_COMMANDS: Mapping[type, str] = {
    Killable: "kill and restart",
    Stoppable: "shut_down",
    Pausable: "pause and resume",
}
_LACKS: Mapping[type, str] = {
    power: f"--powers FILE.toml gives it to nodes by the commands {_COMMANDS[power]}"
    if power in _COMMANDS
    else "no command gives it; use a cluster that onceproof starts"
    for power in POWERS
}


class CommandedNode:
    """A broker or controller without powers. `control` is None for a controller that clients cannot reach."""

    lacks: ClassVar[Mapping[type, str]] = _LACKS

    def __init__(
        self,
        member: Member,
        control: raw_client.Address | None,
        commands: Commands,
        report: Callable[[str], None],
    ) -> None:
        self.member = member
        self._control = control
        self._commands = commands
        self._report = report
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


class Kill(CommandedNode):
    def kill(self) -> None:
        """Return when the node no longer answers, or, if the command has no effect, after a limit."""
        if self.running():
            self._use("kill", lambda: self._must("kill"))
            self._wait_gone(_GONE_LIMIT_S)

    def bring_back(self) -> None:
        super().bring_back()
        if "kill" in self._held:
            self.restart()

    def restart(self) -> None:
        if self.running():
            self._back("kill")
            return
        self._must("restart")
        try:
            wait_until(self._takes_part, _BACK_LIMIT_S, f"{self.name} is not back after its restart command")
        except WaitTimeout as error:
            raise ClusterError(str(error)) from error
        self._back("kill")

    def residue(self) -> list[str]:
        return [*super().residue(), *([] if self.running() else [f"{self.name} does not run"])]


class ShutDown(Kill):
    def shut_down(self, limit_s: float = 60.0) -> int:
        """Return the exit code of the command, as that of the process is not known."""
        if not self.running():
            return 0
        code = self._use("kill", lambda: self._run("shut_down"))
        if not self._wait_gone(limit_s):
            raise WaitTimeout(f"timed out after {limit_s:g} s: {self.name} still answers after shut_down")
        return code


class Pause(CommandedNode):
    def pause(self) -> None:
        self._use("pause", lambda: self._must("pause"))

    def bring_back(self) -> None:
        super().bring_back()
        if "pause" in self._held:
            self.resume()

    def resume(self) -> None:
        """Return when the node is seen to run; raise FaultError if the command does not achieve that."""
        self._must("resume")
        try:
            wait_until(lambda: not self.paused(), _RESUMED_LIMIT_S, "")
        except WaitTimeout:
            raise FaultError(
                f"{self.name} is still paused {_RESUMED_LIMIT_S:g} s after its resume command: "
                f"{self._commands.shown('resume')}"
            ) from None
        self._back("pause")

    def residue(self) -> list[str]:
        return [*super().residue(), *([f"{self.name} is paused"] if self.paused() else [])]


def commanded(
    member: Member, control: raw_client.Address | None, commands: Commands, report: Callable[[str], None]
) -> CommandedNode:
    """Return a node with exactly the powers that it has commands for."""
    there = commands.lines
    powers: list[type[CommandedNode]] = []
    # A node that clients cannot reach can only be observed by a command: without one it lacks the power.
    if "kill" in there and (control is not None or "running" in there):
        powers.append(ShutDown if "shut_down" in there else Kill)
    if "pause" in there and (control is not None or "paused" in there):
        powers.append(Pause)
    return _kind(tuple(powers))(member, control, commands, report)


@cache
def _kind(powers: tuple[type[CommandedNode], ...]) -> type[CommandedNode]:
    has = {ShutDown: (Killable, Stoppable), Kill: (Killable,), Pause: (Pausable,)}
    given = [protocol for power in powers for protocol in has[power]]
    lacks = {power: reason for power, reason in _LACKS.items() if power not in given}
    return type("PoweredNode", powers or (CommandedNode,), {"lacks": lacks})
