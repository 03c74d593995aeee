"""Undo the powers that killed harnesses left in use on users' clusters: run the commands, and observe their effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness.clusters.external import held_powers
from harness.clusters.external.client_properties import read_properties
from harness.clusters.external.commanded_powers import UNDOABLE
from harness.clusters.external.held_powers import Use
from harness.clusters.external.node import LIMITS, Limits
from harness.clusters.external.power_commands import UNDONE_BY, Commands, Powers
from harness.clusters.links.mesh import Member
from harness.errors import ClusterError, FaultError, OnceproofError, UsageError, WaitTimeout
from harness.kafka.protocol.security import Secured, Security
from harness.waiting import wait_until

SETTLE_S = 10.0  # for a command that was under way when its harness was killed


def undo_left(say: Callable[[str], None], *, settle_s: float = SETTLE_S, limits: Limits = LIMITS) -> None:
    """Bring back nodes that killed runs left paused or down, on any cluster; report a line for each, errors included."""
    try:
        left = held_powers.left(say)
    except ClusterError as error:
        say(str(error))
        return
    for file, use in left.items():
        try:
            say(_undo(use, settle_s, limits))
        except OnceproofError as error:
            say(f"{use.node} of {use.bootstrap}: {error}; {file} stays, the next start tries again")
        else:
            file.unlink(missing_ok=True)


def _undo(use: Use, settle_s: float, limits: Limits) -> str:
    """Bring the node back, wait until it is seen to be back, and return what was done."""
    commands = Commands(_lines(use), use.limit_s)
    member = Member(use.node, use.id, use.broker, use.controller)
    why = f"{use.node} of {use.bootstrap}: a run that was killed had begun to {use.power} it at {use.began}"
    try:
        control = Secured.of(use.place, _security(use)) if use.place is not None else None
    except UsageError as error:
        undo = UNDONE_BY[use.power][0]
        code = commands.run(undo, use.node, lambda text: None)
        raise FaultError(
            f"{undo} ended with code {code}, but its effect cannot be observed: {error}"
        ) from error
    node = UNDOABLE[use.power](member, control, commands, lambda text: None, limits)
    _settle(settle_s, use, node.affected)
    return f"{why}; {node.undo()}"


def _settle(settle_s: float, use: Use, affected: Callable[[], bool]) -> None:
    """Wait for the effect of a command whose end its harness did not see, so that the undo comes after it."""
    if not use.commanded:
        with suppress(WaitTimeout):
            wait_until(affected, min(settle_s, use.limit_s), "", every_s=0.5)


def _lines(use: Use) -> dict[str, held_powers.Line]:
    if use.lines is not None:
        return dict(use.lines)
    given: dict[str, object] = {"node": use.node, "id": use.id}
    if use.place is not None:
        given |= {"host": use.place[0], "port": use.place[1]}
    lines = Powers.read(Path(use.powers)).of(use.node, given).lines
    wanted = UNDONE_BY[use.power]
    if wanted[0] not in lines:
        raise FaultError(f"{use.powers} no longer has a {wanted[0]} command")
    return {name: lines[name] for name in wanted if name in lines}


def _security(use: Use) -> Security | None:
    return Security.of(read_properties(Path(use.client_config))) if use.client_config is not None else None
