"""A passer-by joins the run's consumer group and leaves it: the group rebalances twice.

The passer-by reads nothing and never commits. The partitions assigned to it wait while it is a member; when it has left,
the other members go on from their committed offsets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from faults._cases import Case
from faults._workers import wait_progress, workers_of
from harness.contracts import Arena, Bite, Cluster, Healing, Node, WorkerNode
from harness.errors import FaultError, WaitTimeout
from harness.kafka import connection
from harness.targets import consumer
from harness.waiting import wait_until

_NAME = "onceproof-passer-by"
_ASK_S = 10.0
_LEAVE_LIMIT_S = 30.0
_JOIN_LIMIT_S = 45.0  # members notice at their next heartbeat, but the group waits for a dead member
# Settings that must be the same for all members of a group.
_SHARED_SETTINGS = ("partition.assignment.strategy", "group.protocol", "group.remote.assignor")


@dataclass(frozen=True)
class Group:
    """A consumer group as its coordinator describes it."""

    stable: bool
    members: Mapping[str, int]  # member id -> number of its partitions
    passers_by: int


@dataclass(frozen=True)
class Rebalance:
    """Bites when the coordinator counts the passer-by among the members of a stable group."""

    needs: ClassVar[type] = WorkerNode
    ways: ClassVar[Mapping[str, str]] = {"member": "consumers in a group"}
    bites_when: ClassVar[str] = "the coordinator counts one member more, and the group is stable with it"

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        members = _consumers(nodes)
        if not members:
            yield Bite(False, "there was no consumer whose group could be joined", way="member")
            return
        before, settings = ask_group(arena.cluster, arena.group), members[0].client_settings
        passer_by = PasserBy(arena, {key: settings[key] for key in _SHARED_SETTINGS if key in settings})
        with ExitStack() as undo:
            undo.callback(passer_by.leave)
            passer_by.join()
            yield self._bite(arena, before, time.monotonic())

    def _bite(self, arena: Arena, before: Group | None, begun: float) -> Bite:
        last: Group | None = None

        def joined() -> Group | None:
            nonlocal last
            last = ask_group(arena.cluster, arena.group)
            return last if last is not None and last.stable and last.passers_by else None

        limit_s = arena.patience * _JOIN_LIMIT_S
        try:
            now = wait_until(joined, limit_s, "", every_s=0.1)
        except WaitTimeout:
            return Bite(
                False,
                f"the passer-by was not taken into {arena.group} within {limit_s:g} s: {last}",
                way="member",
            )
        took, members = time.monotonic() - begun, 0 if before is None else len(before.members)
        proof = (
            f"{arena.group} went from {members} to {len(now.members)} members and rebalanced in {took:.1f} s"
        )
        measured = {"members_before": float(members), "members_during": float(len(now.members))}
        return Bite(len(now.members) > members, proof, {**measured, "joined_s": round(took, 3)}, way="member")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait until the group is stable with only the run's consumers, and consumers with partitions make progress."""
        own = [n for n in arena.nodes() if isinstance(n, WorkerNode) and n.stays_in_group and n.running()]

        def disturbed() -> str | None:
            group = ask_group(arena.cluster, arena.group)
            if group is None:
                return "no coordinator describes the group"
            if group.passers_by or not group.stable or len(group.members) != len(own):
                return f"{arena.group} is not stable with {len(own)} members: {group}"
            return None

        return wait_progress(arena, _consumers(nodes), disturbed)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "rebalance"}

    def __str__(self) -> str:
        return "rebalance"


class PasserBy:
    """A group member that joins rebalances, pauses every partition assigned to it, and never commits."""

    def __init__(self, arena: Arena, settings: Mapping[str, Any]) -> None:
        self._topic = arena.topic
        own = connection.settings(
            arena.cluster,
            group_id=arena.group,
            client_id=_NAME,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
        )
        self._settings = {**own, **settings}
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._live, name=_NAME, daemon=True)

    def join(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Leave the group; return when the member has left. Idempotent."""
        self._leaving.set()
        if self._thread.ident is not None:
            self._thread.join(_LEAVE_LIMIT_S)
        if self._thread.is_alive():
            raise FaultError(f"the passer-by has not left its group after {_LEAVE_LIMIT_S:g} s")

    def _live(self) -> None:
        consumer = Consumer(self._settings)
        try:
            consumer.subscribe([self._topic])
            while not self._leaving.is_set():
                consumer.consume(
                    1000, 0.1
                )  # also takes part in rebalances; records that came before the pause are dropped
                with suppress(KafkaException):
                    consumer.pause(consumer.assignment())
        finally:
            consumer.close()


def ask_group(cluster: Cluster, group: str) -> Group | None:
    """Return the group as its coordinator describes it; None when no coordinator answers."""
    admin = AdminClient(connection.settings(cluster))
    try:
        described = admin.describe_consumer_groups([group], request_timeout=_ASK_S)[group].result(_ASK_S)
    except (KafkaException, TimeoutError):
        return None
    members = {m.member_id: len(m.assignment.topic_partitions) for m in described.members}
    passers_by = sum(member.client_id == _NAME for member in described.members)
    return Group(described.state == ConsumerGroupState.STABLE, members, passers_by)


def _consumers(nodes: Sequence[Node]) -> list[WorkerNode]:
    workers = workers_of(nodes)
    for worker in workers:
        if not worker.stays_in_group:
            raise FaultError(f"{worker.name} is not a consumer, so it has no group to rebalance")
    return workers


cases = (Case(Rebalance(), consumer(1)),)
fault_class = Rebalance
