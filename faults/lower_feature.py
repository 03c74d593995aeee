"""An operator lowers the level of a feature of the cluster, as before a downgrade; the undo raises it again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import wait_whole
from faults._operators import NO_TARGET, WAY, WAYS, Memory, names_of
from faults.rolling_upgrade import finalized, of_any
from harness.contracts import Arena, Bite, Healing, Mode, Node, Upgradable
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.protocol import features as protocol_features
from harness.targets import every_broker
from harness.waiting import wait_until

_ASK_S = 10.0
ELIGIBLE_LEADERS = "eligible.leader.replicas.version"


@dataclass(frozen=True)
class LowerFeature:
    """Level 0 switches a feature off. It concerns the whole cluster, whatever the target is.

    By default: eligible leader replicas (KIP-966), which clusters have since Kafka 4.1 and can switch off.
    """

    feature: str = ELIGIBLE_LEADERS
    to: int = 0
    needs: ClassVar[type] = Upgradable  # the features of a user's cluster are left alone
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = "every broker reports the lower level as finalized"
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.to < 0:
            raise UsageError(f"lower_feature: to={self.to} is no level; set 0 or more")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        if not nodes:
            yield Bite(False, NO_TARGET)
            return
        before = self._level(arena)
        self._memory.keep(arena, nodes, before)
        with ExitStack() as undo:
            undo.callback(self._raise, arena, before)
            yield self._bite(arena, before)

    def _bite(self, arena: Arena, before: int) -> Bite:
        if before <= self.to:
            return Bite(False, f"{self.feature} is {before}, which is not above {self.to}", way=WAY)
        begun = time.monotonic()
        try:
            of_any(arena, lambda at: protocol_features.lower_features(at, {self.feature: self.to}, _ASK_S))
            self._wait(arena, self.to)
        except (ClusterError, WaitTimeout) as error:
            return Bite(False, str(error), way=WAY)
        took = time.monotonic() - begun
        measured = {
            "level_before": float(before),
            "level_after": float(self.to),
            "lowered_s": round(took, 3),
        }
        proof = f"{self.feature} is {self.to} instead of {before} at every broker after {took:.1f} s"
        return Bite(True, proof, measured, WAY)

    def _level(self, arena: Arena) -> int:
        return finalized(arena.cluster.view()).get(self.feature, 0)

    def _raise(self, arena: Arena, level: int) -> None:
        if self._level(arena) < level:
            of_any(arena, lambda at: protocol_features.raise_features(at, {self.feature: level}, _ASK_S))

    def _wait(self, arena: Arena, level: int) -> None:
        wait_until(
            lambda: self._level(arena) == level,
            arena.patience * _ASK_S,
            lambda: f"{self.feature} is {self._level(arena)}, not {level}",
        )

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        wanted = self._memory.of(arena, nodes, None)

        def differs() -> str | None:
            try:
                now = self._level(arena)
            except ClusterError as error:
                return str(error)
            return f"{self.feature} is {now}, not {wanted}" if wanted not in (None, now) else None

        return wait_whole(arena, names_of(nodes), differs, f"has {self.feature} {wanted} again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "lower_feature", "feature": self.feature, "to": self.to}

    def __str__(self) -> str:
        return "lower_feature"


cases = (Case(LowerFeature(), every_broker(), modes=(Mode.AT_LEAST_ONCE,)),)
fault_class = LowerFeature
