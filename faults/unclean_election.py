"""A replica that missed records becomes leader while all brokers that have them are down. Loses acked records by design."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults import _ensemble
from faults._cases import Case
from faults._measure import MOVE_LIMIT_S, wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, Memory, summarize
from harness.contracts import Arena, Bite, Healing, Killable, Node, PartitionState, Pausable
from harness.errors import ClusterError, FaultError, UsageError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.waiting import in_parallel, wait_until

Offsets = Mapping[int, tuple[int, int]]  # start and end, by partition


@dataclass(frozen=True)
class UncleanElection:
    """The target is paused until it has left the in-sync sets and `records` more were written; then the brokers of
    the other replicas are killed, and the target is resumed and elected. The undo starts the other brokers again.
    With `elect=False` the target is not elected: the partitions wait for the other brokers without a leader.

    Needs a topic with min.insync.replicas=1, so that the target alone accepts writes, and separate controllers.
    """

    records: int = 200
    elect: bool = True
    needs: ClassVar[type] = Pausable
    requests: ClassVar[tuple[str, ...]] = ("ElectLeaders", "OffsetForLeaderEpoch")
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = (
        "the target leads in a later epoch, and its log ends before the offsets that the other brokers had reached; "
        "with elect=False: it missed records and runs, and its partitions have no leader"
    )
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.records < 1:
            raise UsageError(f"unclean_election: records={self.records} would lose nothing; set at least 1")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        if not nodes:
            yield Bite(False, NO_TARGET)
            return
        heir, states = _heir(nodes), _held_by(arena, nodes)
        others = _others(arena, heir, states)
        self._memory.keep(arena, nodes, others)
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: node.restart(), others)
            undo.callback(heir.resume)
            yield self._bite(arena, heir, others, states)

    def _bite(
        self, arena: Arena, heir: Pausable, others: Sequence[Killable], before: Sequence[PartitionState]
    ) -> Bite:
        if not before or not others:
            return Bite(
                False, f"{heir.name} has no partition of {arena.topic} with replicas on other brokers"
            )
        partitions = [state.partition for state in before]
        admin = Administrator(arena.cluster, arena.topic)
        try:
            heir.pause()
            _wait(arena, partitions, lambda state: heir.name not in state.in_sync, "it stays in sync")
            had = self._written(admin, partitions, arena.patience * MOVE_LIMIT_S)
            in_parallel(lambda node: node.kill(), others)
            heir.resume()
            begun = time.monotonic()
            _wait(arena, partitions, lambda state: state.leader is None, "it has a leader")
            if not self.elect:
                return _waiting(before, heir.name, self.records)
            self._elect(arena, admin, partitions, heir.name)
            took = time.monotonic() - begun
            return _measured(admin, before, had, heir.name, took)
        except (ClusterError, WaitTimeout) as error:
            return Bite(False, f"{heir.name} was not seen to lead with records missing: {error}")

    def _written(self, admin: Administrator, partitions: Sequence[int], limit_s: float) -> Offsets:
        """Wait until enough records were written that the target misses; return where the logs end then."""

        def end(offsets: Offsets) -> int:
            return sum(offsets[partition][1] for partition in partitions)

        begun = end(admin.offsets())

        def enough() -> Offsets | None:
            now = admin.offsets()
            return now if end(now) - begun >= self.records else None

        what = f"fewer than {self.records} records were written while it was out of sync"
        return wait_until(enough, limit_s, what, every_s=0.1)

    def _elect(self, arena: Arena, admin: Administrator, partitions: Sequence[int], heir: str) -> None:
        refused = ""

        def elected() -> bool:
            nonlocal refused
            try:
                refused = str(admin.elect(partitions, unclean=True))
                states = _some(arena, partitions)
            except ClusterError as error:  # the broker has only just resumed
                refused = str(error)
                return False
            return len(states) == len(partitions) and all(state.leader == heir for state in states)

        limit_s = arena.patience * MOVE_LIMIT_S
        wait_until(elected, limit_s, lambda: f"not elected: {refused}", every_s=0.2)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        heir = _heir(nodes)
        others: Sequence[Killable] = self._memory.of(arena, nodes, ())

        def away() -> str | None:
            names = [node.name for node in others if not node.running()]
            names += [heir.name] if heir.paused() else []
            return f"{', '.join(names)} does not run" if names else None

        names = [heir.name, *(node.name for node in others)]
        return wait_whole(arena, names, away, "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "unclean_election", "records": self.records, "elect": self.elect}

    def __str__(self) -> str:
        return "unclean_election" if self.elect else "unclean_election-not_elected"


def _waiting(states: Sequence[PartitionState], heir: str, records: int) -> Bite:
    proof = f"{summarize(states)} have no leader while {heir} runs alone, which has missed at least {records} records"
    return Bite(True, proof, {"partitions": float(len(states)), "records_missed": float(records)}, WAY)


def _measured(
    admin: Administrator, before: Sequence[PartitionState], had: Offsets, heir: str, took: float
) -> Bite:
    """Measure how far the new leader's log was behind in each partition."""
    now = {state.partition: state for state in admin.states()}
    missing = {}
    for state in before:
        number = state.partition
        if now[number].leader_epoch <= state.leader_epoch:
            return Bite(False, f"the leader epoch of {summarize([state])} has not changed")
        own_end = admin.end_of_epoch(number, now[number].leader_epoch - 1, heir)
        missing[number] = max(0, had[number][1] - own_end)
    worst = max(before, key=lambda state: missing[state.partition])
    epoch = now[worst.partition].leader_epoch
    measured = {
        "offsets_behind": float(sum(missing.values())),
        "partitions": float(len(before)),
        "leader_epoch_before": float(worst.leader_epoch),
        "leader_epoch_after": float(epoch),
        "elected_s": round(took, 3),
    }
    proof = (
        f"{heir} leads {summarize(before)} though its logs are behind by {sum(missing.values())} offsets, "
        f"{missing[worst.partition]} in {summarize([worst])}; leader epoch {worst.leader_epoch} to {epoch}"
    )
    return Bite(measured["offsets_behind"] > 0, proof, measured, WAY)


def _heir(nodes: Sequence[Node]) -> Pausable:
    if len(nodes) != 1:
        raise FaultError(f"unclean_election: needs exactly one target, got {len(nodes)}")
    if not isinstance(nodes[0], Pausable):
        raise FaultError(f"{nodes[0].name} cannot be paused")
    return nodes[0]


def _held_by(arena: Arena, nodes: Sequence[Node]) -> list[PartitionState]:
    states = arena.cluster.view().partitions(arena.topic)
    return [state for state in states if nodes[0].name in state.replicas]


def _others(arena: Arena, heir: Node, states: Sequence[PartitionState]) -> list[Killable]:
    """Return the brokers of all other replicas; raise FaultError if controllers, which have to elect, are among them."""
    names = {name for state in states for name in state.replicas} - {heir.name}
    if needed := sorted(names & set(_ensemble.voters(arena.cluster.view()))):
        raise FaultError(
            f"unclean_election: {', '.join(needed)} cannot be killed, as controllers have to elect the leader; use separate controllers"
        )
    nodes = [node for node in arena.cluster.nodes() if node.name in names]
    others = [node for node in nodes if isinstance(node, Killable)]
    if len(others) < len(names):
        raise FaultError("unclean_election: not every broker with a replica can be killed")
    return others


def _some(arena: Arena, partitions: Sequence[int]) -> list[PartitionState]:
    return [s for s in arena.cluster.view().partitions(arena.topic) if s.partition in partitions]


def _wait(
    arena: Arena, partitions: Sequence[int], condition: Callable[[PartitionState], bool], complaint: str
) -> None:
    def settled() -> bool:
        try:
            states = _some(arena, partitions)
        except ClusterError:  # no broker answers for the moment
            return False
        return len(states) == len(partitions) and all(map(condition, states))

    wait_until(settled, arena.patience * MOVE_LIMIT_S, complaint, every_s=0.1)


cases: tuple[Case, ...] = ()  # no mode survives it: suites/hazards/unclean_election.py provokes it
fault_class = UncleanElection
