"""An operator moves replicas off a broker: to a broker without one, or, if every broker has one, removes them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, Memory, differs, names_of, summarize
from harness.contracts import Arena, Bite, Healing, Node, PartitionState
from harness.errors import ClusterError
from harness.kafka.admin import MOVE_LIMIT_S, Administrator
from harness.targets import leader_of

SWAP, SHRINK = "swap", "shrink"


@dataclass(frozen=True)
class Reassign:
    """If there are as many replicas as brokers, no other broker can take over, so there is one replica fewer while it is held."""

    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("AlterPartitionReassignments", "ElectLeaders")
    ways: ClassVar[Mapping[str, str]] = {SWAP: "a broker without a replica", SHRINK: "nothing"}
    bites_when: ClassVar[str] = "the new replicas are in place and in sync, and none is on the target"
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        admin = Administrator(arena.cluster, arena.topic, arena.patience * MOVE_LIMIT_S)
        names = names_of(nodes)
        there = [state for state in admin.states() if names & set(state.replicas)]
        wanted = moved(there, names, arena.cluster.view().registered_brokers())
        before = [state for state in there if state.partition in wanted]
        self._memory.keep(arena, nodes, before)
        with ExitStack() as undo:
            if wanted:
                undo.callback(admin.restore, before)
            yield self._bite(admin, before, wanted, names) if nodes else Bite(False, NO_TARGET)

    def _bite(
        self,
        admin: Administrator,
        before: Sequence[PartitionState],
        wanted: Mapping[int, Sequence[str]],
        names: frozenset[str],
    ) -> Bite:
        if not wanted:
            return Bite(False, f"{', '.join(sorted(names))} has no replica that could be taken away")
        begun = time.monotonic()
        try:
            admin.place(wanted)
        except ClusterError as error:
            return Bite(False, str(error))
        took = time.monotonic() - begun
        now = [state for state in admin.states() if state.partition in wanted]
        kept = [state for state in now if names & {*state.replicas, *state.in_sync, state.leader}]
        if kept:
            return Bite(False, f"{summarize(kept)} still has a replica on {', '.join(sorted(names))}")
        shrunk = any(len(wanted[state.partition]) < len(state.replicas) for state in before)
        was, new = before[0].replicas, tuple(wanted[before[0].partition])
        proof = f"replicas of {summarize(before)} moved from {', '.join(was)} to {', '.join(new)}, complete after {took:.1f} s"
        measured = {
            "complete_s": round(took, 3),
            "partitions_moved": float(len(wanted)),
            "replicas_before": float(len(was)),
            "replicas_after": float(len(new)),
        }
        return Bite(True, proof, measured, SHRINK if shrunk else SWAP)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        before = self._memory.of(arena, nodes, ())
        return wait_whole(
            arena, names_of(nodes), lambda: differs(arena, before), "has its replicas again, in the old order"
        )

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "reassign"}

    def __str__(self) -> str:
        return "reassign"


def moved(
    there: Sequence[PartitionState], names: frozenset[str], brokers: Sequence[str]
) -> dict[int, tuple[str, ...]]:
    """Return the replicas with each target replaced by a spare broker, or removed when no spare broker is left."""
    wanted = {}
    for state in there:
        spares = [name for name in brokers if name not in names and name not in state.replicas]
        at = state.partition % len(spares) if spares else 0
        spares = spares[at:] + spares[:at]  # spread the partitions over the spare brokers
        new = [
            spares.pop(0) if name in names and spares else name
            for name in state.replicas
            if name not in names or spares
        ]
        if new:
            wanted[state.partition] = tuple(new)
    return wanted


cases = (Case(Reassign(), leader_of(0)),)
fault_class = Reassign
