"""The powers of nodes by commands: each is a mix-in of the nodes that have the commands for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import ClassVar

from harness.clusters.external.node import LACKS, LIMITS, CommandedNode, Limits
from harness.clusters.external.power_commands import Commands
from harness.clusters.links.mesh import Member
from harness.contracts import Killable, Pausable, Stoppable
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.kafka.protocol import raw_client
from harness.waiting import wait_until


class UndoableNode(CommandedNode):
    """A power that has to be undone, by this harness or, if it was killed, by the next one."""

    gives: ClassVar[tuple[type, ...]]  # protocols of harness.contracts.powers

    def affected(self) -> bool:
        """Return whether the power is seen to have its effect."""
        raise NotImplementedError

    def undo(self) -> str:
        """Undo the power, return when that is observed, and say what was done."""
        raise NotImplementedError


class Kill(UndoableNode):
    gives: ClassVar[tuple[type, ...]] = (Killable,)

    def affected(self) -> bool:
        return not self.running()

    def undo(self) -> str:
        if self.running():
            return "it runs"
        self.restart()
        return "restarted, it takes part again"

    def kill(self) -> None:
        """Return when the node no longer answers, or, if the command has no effect, after a limit."""
        if self.running():
            self._use("kill", lambda: self._must("kill"))
            self._wait_gone(self._limits.gone_s)

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
            wait_until(
                self._takes_part, self._limits.back_s, f"{self.name} is not back after its restart command"
            )
        except WaitTimeout as error:
            raise ClusterError(str(error)) from error
        self._back("kill")

    def residue(self) -> list[str]:
        return [*super().residue(), *([] if self.running() else [f"{self.name} does not run"])]


class ShutDown(Kill):
    gives: ClassVar[tuple[type, ...]] = (Killable, Stoppable)

    def shut_down(self, limit_s: float = 60.0) -> int:
        """Return the exit code of the command, as that of the process is not known."""
        if not self.running():
            return 0
        code = self._use("kill", lambda: self._run("shut_down"))
        if not self._wait_gone(limit_s):
            raise WaitTimeout(f"timed out after {limit_s:g} s: {self.name} still answers after shut_down")
        return code


class Pause(UndoableNode):
    gives: ClassVar[tuple[type, ...]] = (Pausable,)

    def affected(self) -> bool:
        return self.paused()

    def undo(self) -> str:
        self.resume()
        return "resumed, it answers"

    def pause(self) -> None:
        self._use("pause", lambda: self._must("pause"))

    def bring_back(self) -> None:
        super().bring_back()
        if "pause" in self._held:
            self.resume()

    def resume(self) -> None:
        """Return when the node is seen to run; raise FaultError if the command does not achieve that."""
        self._must("resume")
        limit_s = self._limits.resumed_s
        try:
            wait_until(lambda: not self.paused(), limit_s, "")
        except WaitTimeout:
            raise FaultError(
                f"{self.name} is still paused {limit_s:g} s after its resume command: "
                f"{self._commands.shown('resume')}"
            ) from None
        self._back("pause")

    def residue(self) -> list[str]:
        return [*super().residue(), *([f"{self.name} is paused"] if self.paused() else [])]


UNDOABLE: Mapping[str, type[UndoableNode]] = {"kill": Kill, "pause": Pause}  # as UNDONE_BY has them


def commanded(
    member: Member,
    control: raw_client.Address | None,
    commands: Commands,
    report: Callable[[str], None],
    limits: Limits = LIMITS,
) -> CommandedNode:
    """Return a node with exactly the powers that it has commands for."""
    there = commands.lines
    powers: list[type[UndoableNode]] = []
    # A node that clients cannot reach can only be observed by a command: without one it lacks the power.
    if "kill" in there and (control is not None or "running" in there):
        powers.append(ShutDown if "shut_down" in there else Kill)
    if "pause" in there and (control is not None or "paused" in there):
        powers.append(Pause)
    return _kind(tuple(powers))(member, control, commands, report, limits)


@cache
def _kind(powers: tuple[type[UndoableNode], ...]) -> type[CommandedNode]:
    given = [protocol for power in powers for protocol in power.gives]
    lacks = {power: reason for power, reason in LACKS.items() if power not in given}
    return type("PoweredNode", powers or (CommandedNode,), {"lacks": lacks})
