"""An operator moves leadership: another in-sync replica becomes preferred and is elected; nothing is copied or stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, Memory, differs, names_of, summarize
from harness.contracts import Arena, Bite, Healing, Node, PartitionState
from harness.errors import ClusterError
from harness.kafka.admin import MOVE_LIMIT_S, Administrator, first
from harness.targets import leader_of

Moves = Mapping[int, tuple[PartitionState, str]]  # by partition: its earlier state and its next leader


@dataclass(frozen=True)
class TransferLeadership:
    """The next in-sync replica leads the target's partitions of the topic under test; later the target leads them again."""

    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("AlterPartitionReassignments", "ElectLeaders")
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = "another replica leads what the target led, in a later leader epoch"
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        admin = Administrator(arena.cluster, arena.topic, arena.patience * MOVE_LIMIT_S)
        names = names_of(nodes)
        led = [state for state in admin.states() if state.leader in names]
        moves = _moves(led, names)
        before = [state for state, _ in moves.values()]
        self._memory.keep(arena, nodes, before)
        with ExitStack() as undo:
            if moves:
                undo.callback(admin.restore, before)
            yield self._bite(admin, moves, led) if nodes else Bite(False, NO_TARGET)

    def _bite(self, admin: Administrator, moves: Moves, led: Sequence[PartitionState]) -> Bite:
        if not led:
            return Bite(False, "the target leads no partition, so there was nothing to transfer")
        if not moves:
            return Bite(False, f"no other replica of {summarize(led)} is in sync")
        begun = time.monotonic()
        try:
            admin.place({number: first(heir, state.replicas) for number, (state, heir) in moves.items()})
            admin.lead({number: heir for number, (_, heir) in moves.items()})
        except ClusterError as error:
            return Bite(False, str(error))
        took = time.monotonic() - begun
        now = {state.partition: state for state in admin.states()}
        late = [was for n, (was, _) in moves.items() if now[n].leader_epoch <= was.leader_epoch]
        if late:
            return Bite(False, f"the leader epoch of {summarize(late)} has not changed")
        (was, heir), *_ = moves.values()
        proof = (
            f"leader of {summarize([was for was, _ in moves.values()])} moved from {was.leader} to {heir}, "
            f"leader epoch {was.leader_epoch} to {now[was.partition].leader_epoch}, after {took:.1f} s"
        )
        measured = {
            "leader_moved_s": round(took, 3),
            "partitions_moved": float(len(moves)),
            "leader_epoch_before": float(was.leader_epoch),
            "leader_epoch_after": float(now[was.partition].leader_epoch),
        }
        return Bite(True, proof, measured, WAY)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        before = self._memory.of(arena, nodes, ())
        return wait_whole(
            arena, names_of(nodes), lambda: differs(arena, before), "leads again what it led before"
        )

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "transfer_leadership"}

    def __str__(self) -> str:
        return "transfer_leadership"


def _moves(led: Sequence[PartitionState], names: frozenset[str]) -> Moves:
    """Choose the next in-sync replica in the order of the replicas, for each partition that has another one."""
    moves = {}
    for state in led:
        at = state.replicas.index(state.leader) if state.leader in state.replicas else 0
        following = (*state.replicas[at:], *state.replicas[:at])
        heirs = [name for name in following if name in state.in_sync and name not in names]
        if heirs:
            moves[state.partition] = (state, heirs[0])
    return moves


cases = (Case(TransferLeadership(), leader_of(0)),)
fault_class = TransferLeadership
