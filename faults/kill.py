"""SIGKILL: the process ends without a clean shutdown; the undo starts it again.

With `unread` it is stopped first, until producers have that many more records acked: it dies with records that it never read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import TRANSACTIONAL, Case
from faults._measure import Leadership, able, names_in_cluster, not_running, wait_whole
from harness.contracts import Arena, Bite, Healing, Killable, Node, PausableAndKillable, WorkerNode
from harness.errors import UsageError, WaitTimeout
from harness.targets import active_controller, group_coordinator, leader_of, minority, transaction_coordinator
from harness.waiting import in_parallel, wait_until

_UNREAD_S = 1.0  # least time between stop and kill, so that producers write to each connection several times
_UNREAD_LIMIT_S = 15.0


@dataclass(frozen=True)
class Kill:
    """Kills all targets at once. Bites when every process has ended and other nodes, if any can, lead what it led.

    With `unread` above 0 the process is stopped first (SIGSTOP), until the producers have that many more records acked, and
    killed in that state. It never reads what producers write to its sockets meanwhile. With acks=0 such records count as
    acked and are certainly lost, whenever the kill comes.
    """

    unread: int = 0
    needs: ClassVar[type] = Killable
    ways: ClassVar[Mapping[str, str]] = {"process": "nothing"}
    bites_when: ClassVar[str] = "every process has ended and other nodes lead what it led"

    def __post_init__(self) -> None:
        if self.unread < 0:
            raise UsageError(f"kill: unread={self.unread}; set a number of records, 0 or more")
        if self.unread:
            object.__setattr__(self, "needs", PausableAndKillable)

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = killable(nodes)
        led = Leadership.of(arena, names_in_cluster(arena, victims))
        with ExitStack() as undo:
            # In parallel: a quorum that was killed as a whole only comes back as a whole.
            undo.callback(in_parallel, lambda node: node.restart(), victims)
            unread = self._leave_unread(arena, nodes)
            if not unread.bit:
                yield unread
                return
            begun = time.monotonic()
            in_parallel(lambda node: node.kill(), victims)
            bite = self._bite(arena, victims, led, begun)
            yield Bite(bite.bit, unread.proof + bite.proof, {**unread.measured, **bite.measured}, bite.way)

    def _leave_unread(self, arena: Arena, nodes: Sequence[Node]) -> Bite:
        """Stop the nodes until enough records were acked that they have not read; resume them if that does not happen."""
        if not self.unread or not nodes:
            return Bite(True, "")
        victims = able(nodes, PausableAndKillable, "{} cannot be stopped before it is killed")
        names = ", ".join(node.name for node in victims)
        with ExitStack() as undo:
            for node in victims:
                undo.callback(node.resume)
            in_parallel(lambda node: node.pause(), victims)
            begun, before = time.monotonic(), _acked(arena)
            if awake := [node.name for node in victims if not node.paused()]:
                return Bite(False, f"{', '.join(awake)} is not stopped after SIGSTOP", way="process")

            least_s, limit_s = arena.patience * _UNREAD_S, arena.patience * _UNREAD_LIMIT_S

            def enough() -> bool:
                return time.monotonic() - begun >= least_s and _acked(arena) - before >= self.unread

            try:
                wait_until(enough, limit_s, "", every_s=0.02)
            except WaitTimeout:
                few = f"{_acked(arena) - before} of {self.unread} records were acked"
                return Bite(False, f"{few} while {names} was stopped for {limit_s:g} s", way="process")
            undo.pop_all()  # they are killed while stopped
        acked = _acked(arena) - before
        proof = f"process of {names} stopped and read nothing more, {acked} records were acked; "
        return Bite(True, proof, {"acked_while_stopped": float(acked)})

    def _bite(self, arena: Arena, victims: Sequence[Killable], led: Leadership, begun: float) -> Bite:
        if not victims:
            return Bite(False, "there was no node to kill")
        alive = [node.name for node in victims if node.running()]
        if alive:
            return Bite(False, f"{', '.join(alive)} still runs after SIGKILL", way="process")
        gone = f"process of {', '.join(node.name for node in victims)} gone"
        measured = {"killed": float(len(victims))}
        if not led.names:
            return Bite(True, gone, measured, way="process")
        moved = led.wait_taken_over(arena, begun)
        return Bite(moved.moved, f"{gone}; {moved.proof}", {**measured, **moved.measured}, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        victims = killable(nodes)
        names = [node.name for node in nodes]
        return wait_whole(arena, names, lambda: not_running(victims), "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "kill", "unread": self.unread}

    def __str__(self) -> str:
        return "kill"


def killable(nodes: Sequence[Node]) -> list[Killable]:
    return able(nodes, Killable, "{} cannot be killed")


def _acked(arena: Arena) -> int:
    """Return the number of records acked so far to all producers of the run."""
    return sum(node.counters().acked for node in arena.nodes() if isinstance(node, WorkerNode))


cases = (
    Case(Kill(), leader_of(0)),
    Case(Kill(), minority(1), name="kill-minority"),
    Case(Kill(), active_controller(), name="kill-controller"),
    Case(Kill(), group_coordinator(), name="kill-group_coordinator"),
    Case(Kill(), transaction_coordinator(1), modes=TRANSACTIONAL, name="kill-transaction_coordinator"),
)
fault_class = Kill
