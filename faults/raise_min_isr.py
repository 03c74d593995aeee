"""An operator raises `min.insync.replicas` while a replica is out of sync: leaders refuse records with acks=all until it is undone.

Brokers ignore what is above the number of replicas, so it has an effect only where a replica is out of sync, such as one on a stopped broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import HEAL_LIMIT_S
from faults._operators import NO_TARGET, WAY, Memory
from harness.contracts import Arena, Bite, Healing, Node
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.kafka.protocol import produce
from harness.waiting import wait_until

MIN_ISR = "min.insync.replicas"
NOT_ENOUGH_REPLICAS = 19
_EFFECT_LIMIT_S = 10.0
_ASK_S = 5.0


@dataclass(frozen=True)
class RaiseMinIsr:
    """Sets it for the topic under test, whatever the target is. The undo returns when all logs that grew before grow again:
    faults that are undone after it are undone when records were accepted.
    """

    to: int = 3
    needs: ClassVar[type] = Node
    requests: ClassVar[tuple[str, ...]] = ("DescribeConfigs", "IncrementalAlterConfigs")
    ways: ClassVar[Mapping[str, str]] = {WAY: "partitions with a replica out of sync"}
    bites_when: ClassVar[str] = (
        "every leader answers NOT_ENOUGH_REPLICAS to a probe that it would not write anyway"
    )
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.to < 2:
            raise UsageError(f"raise_min_isr: to={self.to}; set at least 2")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        admin = Administrator(arena.cluster, arena.topic)
        if not nodes:
            yield Bite(False, NO_TARGET)
            return
        before = admin.overrides().get(MIN_ISR)
        self._memory.keep(arena, nodes, before)
        with ExitStack() as undo:
            growing = _grown(admin, arena.patience * _EFFECT_LIMIT_S)
            undo.callback(_restore, admin, before, growing, arena.patience * HEAL_LIMIT_S)
            yield self._bite(arena, admin)

    def _bite(self, arena: Arena, admin: Administrator) -> Bite:
        begun, limit_s = time.monotonic(), arena.patience * _EFFECT_LIMIT_S
        codes: dict[int, int] = {}

        def all_refuse() -> bool:
            codes.update(_answers(arena))
            return bool(codes) and set(codes.values()) == {NOT_ENOUGH_REPLICAS}

        try:
            admin.override({MIN_ISR: str(self.to)})
            wait_until(all_refuse, limit_s, "")
        except WaitTimeout:
            others = sorted(number for number, code in codes.items() if code != NOT_ENOUGH_REPLICAS)
            proof = f"after {limit_s:g} s partitions {others} accept records: they need a replica out of sync"
            return Bite(False, proof, way=WAY)
        except ClusterError as error:
            return Bite(False, str(error), way=WAY)
        took = time.monotonic() - begun
        proof = (
            f"{MIN_ISR}={self.to}: the leaders of {len(codes)} partitions refuse records after {took:.1f} s"
        )
        return Bite(True, proof, {"partitions_refusing": float(len(codes)), "refused_s": round(took, 3)}, WAY)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        admin = Administrator(arena.cluster, arena.topic)
        before = self._memory.of(arena, nodes, None)

        def still_set() -> str | None:
            try:
                now = admin.overrides().get(MIN_ISR)
            except ClusterError as error:
                return str(error)
            return None if now == before else f"{arena.topic} still has {MIN_ISR}={now}"

        # Not whole partitions: a replica was out of sync before.
        begun = time.monotonic()
        try:
            wait_until(lambda: still_set() is None, arena.patience * HEAL_LIMIT_S, "")
        except WaitTimeout:
            return Healing(False, still_set() or "", {})
        took = round(time.monotonic() - begun, 3)
        return Healing(True, "the topic has its old settings", {"restored_s": took})

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "raise_min_isr", "to": self.to}

    def __str__(self) -> str:
        return "raise_min_isr"


def _ends(admin: Administrator) -> dict[int, int]:
    return {partition: end for partition, (_, end) in admin.offsets().items()}


def _grown(admin: Administrator, limit_s: float) -> list[int]:
    """Return the partitions whose logs grow: all of them, or after the time limit those that do."""
    before = _ends(admin)
    now = dict(before)

    def all_grow() -> bool:
        now.update(_ends(admin))
        return all(now[partition] > end for partition, end in before.items())

    with suppress(WaitTimeout):
        wait_until(all_grow, limit_s, "")
    return [partition for partition, end in before.items() if now[partition] > end]


def _answers(arena: Arena) -> dict[int, int]:
    """Return the error code of each leader for a record with acks=all that it does not write in any case."""
    view = arena.cluster.view()
    places = view.broker_places()
    return {
        state.partition: produce.refusal(places[state.leader].control, arena.topic, state.partition, _ASK_S)
        for state in view.partitions(arena.topic)
        if state.leader is not None
    }


def _restore(admin: Administrator, before: str | None, growing: Sequence[int], limit_s: float) -> None:
    """Set the old value and wait until the logs grow again; they may not, if the producers have ended."""
    ends = _ends(admin)
    admin.override({MIN_ISR: before})
    with suppress(WaitTimeout):
        wait_until(lambda: _all_beyond(_ends(admin), ends, growing), limit_s, "")


def _all_beyond(now: Mapping[int, int], ends: Mapping[int, int], partitions: Sequence[int]) -> bool:
    return all(now[partition] > ends[partition] for partition in partitions)


cases: tuple[Case, ...] = ()  # suites/hazards/retry_reorder.py holds it while a broker is stopped
fault_class = RaiseMinIsr
