"""A rolling upgrade: controllers, then brokers, are stopped and started as another version, one by one, each in sync
before the next; then the features of the cluster are raised. There is no way back, so healed means: whole on the new
version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faults._cases import Case
from faults._measure import able, not_running, wait_whole
from harness.contracts import Arena, Bite, Healing, Node, Upgradable, View
from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.kafka.protocol import features as protocol_features
from harness.kafka.protocol.features import METADATA_VERSION
from harness.provision import KAFKA_VERSION
from harness.waiting import in_parallel, wait_until

_ASK_S = 10.0
_LEFT_ALONE = ("kraft.version",)  # changes how controllers find each other, which is not part of an upgrade


@dataclass(frozen=True)
class RollingUpgrade:
    """The whole roll happens when the window opens; the rest of the window is the time after it."""

    to: str = KAFKA_VERSION
    features: bool = True  # raise them to the newest levels that all nodes support
    limit_s: float = 60.0  # for one clean stop
    needs: ClassVar[type] = Upgradable
    ways: ClassVar[Mapping[str, str]] = {"process": "the jars of both versions"}
    bites_when: ClassVar[str] = (
        "every node reports the new version, leaders were elected, and the finalized metadata.version is higher than before"
    )

    def __post_init__(self) -> None:
        if not self.limit_s > 0:
            raise UsageError(
                f"rolling_upgrade: limit_s={self.limit_s:g} leaves no time to stop; set more than 0"
            )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = in_order(arena, upgradable(nodes))
        with ExitStack() as undo:
            undo.callback(
                in_parallel, lambda node: node.restart(), targets
            )  # starts a node that a failure left stopped
            yield self._roll(arena, targets)

    def _roll(self, arena: Arena, targets: Sequence[Upgradable]) -> Bite:
        if not targets:
            return Bite(False, "there was no node to upgrade")
        seen = _Seen.of(arena, targets)
        proofs: list[str] = []
        away: list[float] = []
        for node in targets:
            begun = time.monotonic()
            try:
                code = node.upgrade(self.to, self.limit_s)
            except WaitTimeout as error:
                return Bite(False, f"the roll ended at {node.name}: {error}", way="process")
            healing = self._whole(arena, [node])
            away.append(time.monotonic() - begun)
            if not healing.healed:
                return Bite(False, f"the roll ended at {node.name}: {healing.proof}", way="process")
            proofs.append(
                f"{node.name} ended with code {code}, in sync as {node.version()} after {away[-1]:.1f} s"
            )
            seen.look(arena)
        levels = self._raise(arena, targets) if self.features else finalized(arena.cluster.view())
        return self._bite(seen, levels, targets, proofs, away)

    def _raise(self, arena: Arena, nodes: Sequence[Upgradable]) -> Mapping[str, int]:
        """Raise the features that all nodes support, wait until every broker has finalized them, return the levels."""
        wanted = newest_for_all([node.features() for node in nodes], finalized(arena.cluster.view()))
        if wanted:
            of_any(arena, lambda at: protocol_features.raise_features(at, wanted, _ASK_S))
            wait_until(
                lambda: wanted.items() <= finalized(arena.cluster.view()).items(),
                arena.patience * _ASK_S,
                lambda: f"asked for {wanted}, finalized are {finalized(arena.cluster.view())}",
            )
        return finalized(arena.cluster.view())

    def _bite(
        self,
        seen: _Seen,
        levels: Mapping[str, int],
        targets: Sequence[Upgradable],
        proofs: Sequence[str],
        away: Sequence[float],
    ) -> Bite:
        now = {node.name: node.version() for node in targets}
        other = [f"{name} {version}" for name, version in now.items() if version != self.to]
        changed = [name for name, version in seen.versions.items() if version != now[name]]
        before, after = seen.levels.get(METADATA_VERSION, 0), levels.get(METADATA_VERSION, 0)
        measured = {
            "upgraded": float(len(changed)),
            "elections": float(seen.elections),
            "metadata_version_before": float(before),
            "metadata_version_after": float(after),
            "slowest_s": round(max(away), 3),
            "roll_s": round(sum(away), 3),
        }
        was = ", ".join(sorted(set(seen.versions.values())))
        proof = (
            f"from {was} to {self.to}: {'; '.join(proofs)}; {seen.elections} leader elections; "
            f"{METADATA_VERSION} {before} -> {after}; features {_join(seen.levels)} -> {_join(levels)}"
        )
        if other:
            return Bite(False, f"{', '.join(other)} instead of {self.to}; {proof}", measured, way="process")
        bit = bool(changed) and seen.elections > 0 and (after > before or not self.features)
        return Bite(bit, proof, measured, way="process")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = upgradable(nodes)
        healing = self._whole(arena, targets)
        other = [f"{node.name} runs {node.version()}" for node in targets if node.version() != self.to]
        if not healing.healed or not other:
            return healing
        return Healing(False, f"not whole on {self.to}: {', '.join(other)}", healing.measured)

    def _whole(self, arena: Arena, nodes: Sequence[Upgradable]) -> Healing:
        names = [node.name for node in nodes]
        return wait_whole(arena, names, lambda: not_running(nodes), f"takes part as {self.to}")

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "rolling_upgrade",
            "to": self.to,
            "features": self.features,
            "limit_s": self.limit_s,
        }

    def __str__(self) -> str:
        return "rolling_upgrade"


@dataclass
class _Seen:
    """The cluster before the roll, and how often leaders were elected during it."""

    versions: Mapping[str, str]
    levels: Mapping[str, int]
    epochs: dict[int, int] = field(default_factory=dict)
    elections: int = 0

    @classmethod
    def of(cls, arena: Arena, nodes: Sequence[Upgradable]) -> _Seen:
        seen = cls({node.name: node.version() for node in nodes}, finalized(arena.cluster.view()))
        seen.epochs = _epochs(arena)
        return seen

    def look(self, arena: Arena) -> None:
        """Count the elections since the last call; none is missed, as each raises the leader epoch by one."""
        now = _epochs(arena)
        self.elections += sum(now[partition] - epoch for partition, epoch in self.epochs.items())
        self.epochs = now


def in_order(arena: Arena, nodes: Sequence[Upgradable]) -> list[Upgradable]:
    """Sort controllers before brokers, so that no controller serves a newer broker; the active controller comes last."""
    view = arena.cluster.view()
    controllers, active = view.controllers(), view.active_controller()

    def place(node: Upgradable) -> int:
        if node.name not in controllers:
            return 2
        return 1 if node.name == active else 0

    return sorted(nodes, key=place)


def newest_for_all(
    supported: Sequence[Mapping[str, tuple[int, int]]], levels: Mapping[str, int]
) -> dict[str, int]:
    """Return the levels to request: the highest that every node supports, where it is above the present one."""
    shared = set.intersection(*(set(one) for one in supported)) - set(_LEFT_ALONE) if supported else set()
    newest = {name: min(one[name][1] for one in supported) for name in sorted(shared)}
    return {name: level for name, level in newest.items() if level > levels.get(name, 0)}


def finalized(view: View) -> Mapping[str, int]:
    """Return the finalized levels as reported by the broker that lags behind most."""
    places = view.broker_places()
    answers = [protocol_features.features(places[name].control, _ASK_S) for name in view.registered_brokers()]
    return min(answers, key=lambda one: one.epoch).finalized if answers else {}


def upgradable(nodes: Sequence[Node]) -> list[Upgradable]:
    return able(nodes, Upgradable, "{} cannot run another version")


def of_any(arena: Arena, act: Callable[[tuple[str, int]], None]) -> None:
    """Send a request about features to a broker, which passes it on to the controller."""
    names = arena.cluster.view().registered_brokers()
    if not names:
        raise ClusterError("no broker is registered to change the features")
    act(arena.cluster.view().broker_places()[names[0]].control)


def _epochs(arena: Arena) -> dict[int, int]:
    return {state.partition: state.leader_epoch for state in arena.cluster.view().partitions(arena.topic)}


def _join(levels: Mapping[str, int]) -> str:
    return " ".join(f"{name}={level}" for name, level in sorted(levels.items())) or "none"


cases: tuple[Case, ...] = ()  # suites/test_versions.py holds it: it needs a cluster of an older version
fault_class = RollingUpgrade
