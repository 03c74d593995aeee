"""An operator has a replica elected that is out of sync, for partitions without a leader. Loses acked records if it missed any."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, names_of, summarize
from harness.contracts import Arena, Bite, Healing, Node, PartitionState
from harness.errors import ClusterError, WaitTimeout
from harness.kafka.admin import MOVE_LIMIT_S, Administrator
from harness.waiting import wait_until


@dataclass(frozen=True)
class ElectUnclean:
    """The in-sync replicas have to be down by another fault. There is no undo: a broker that had them follows the new leader.

    Each partition gets the first of its replicas that is alive. `unclean_election` also arranges what leads to it.
    """

    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("ElectLeaders",)
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = (
        "each partition that had no leader has one that was not in sync, in a later leader epoch"
    )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        yield self._bite(arena) if nodes else Bite(False, NO_TARGET)

    def _bite(self, arena: Arena) -> Bite:
        admin, limit_s = Administrator(arena.cluster, arena.topic), arena.patience * MOVE_LIMIT_S
        try:
            # The last leader may have died only just now.
            before = wait_until(lambda: _without_leader(admin), limit_s, "every partition has a leader")
            begun = time.monotonic()
            wait_until(lambda: _elected(admin), limit_s, "partitions still have no leader", every_s=0.2)
        except WaitTimeout as error:
            return Bite(False, str(error), way=WAY)
        took = time.monotonic() - begun
        now = {state.partition: state for state in admin.states()}
        for was in before:
            new = now[was.partition]
            if new.leader in was.in_sync or new.leader_epoch <= was.leader_epoch:
                return Bite(False, f"{new.leader} leads {summarize([was])}, which is no unclean election")
        leaders = ", ".join(sorted({str(now[was.partition].leader) for was in before}))
        epoch = now[before[0].partition].leader_epoch
        measured = {
            "partitions": float(len(before)),
            "leader_epoch_before": float(before[0].leader_epoch),
            "leader_epoch_after": float(epoch),
            "elected_s": round(took, 3),
        }
        proof = (
            f"{leaders} leads {summarize(before)} without having been in sync, as {_last(before[0])}; "
            f"leader epoch {before[0].leader_epoch} to {epoch}"
        )
        return Bite(True, proof, measured, WAY)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return wait_whole(arena, names_of(nodes), lambda: None, "follows the new leaders")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "elect_unclean"}

    def __str__(self) -> str:
        return "elect_unclean"


def _last(state: PartitionState) -> str:
    # With eligible leader replicas the controller removes even the last one.
    return f"only {', '.join(state.in_sync)} was" if state.in_sync else "no replica was any more"


def _without_leader(admin: Administrator) -> list[PartitionState]:
    try:
        return [state for state in admin.states() if state.leader is None]
    except ClusterError:  # no broker answers for the moment
        return []


def _elected(admin: Administrator) -> bool:
    """Ask for an election where there is no leader; return whether each partition has one."""
    left = _without_leader(admin)
    try:
        if left:
            admin.elect([state.partition for state in left], unclean=True)
        return all(state.leader is not None for state in admin.states())
    except ClusterError:
        return False


cases: tuple[
    Case, ...
] = ()  # no mode survives it: suites/hazards/min_isr_1.py, suites/hazards/unclean_rf2.py
fault_class = ElectUnclean
