"""Shared by disk faults: brokers whose disk can be broken, and the base of faults that stop all writes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from faults._measure import MOVE_LIMIT_S, Leadership, able, not_running, wait_whole
from harness.contracts import Arena, Bite, DiskBreakable, DiskFault, DiskHarm, Healing, Killable, Node
from harness.errors import ClusterError, WaitTimeout
from harness.waiting import in_parallel, wait_until

WAYS = {
    "fuse": "root, Debian's libfuse3-3, and a cluster with Options(fuse=True)",
    "byteman": "nothing",
}
TAKE_LIMIT_S = 30.0
_END_LIMIT_S = (
    10.0  # a broker that ends does so within a second; Kafka does not treat every error as a disk failure
)


@runtime_checkable
class DiskedBroker(DiskBreakable, Killable, Protocol):
    """A broker that can be started again after a disk error ended it."""


def disked(nodes: Sequence[Node]) -> list[DiskedBroker]:
    return able(nodes, DiskedBroker, "the disk of {} cannot be broken")


def wait_takes_records(arena: Arena, node: Node) -> None:
    """Wait until the node accepts records: a broker that has just started does not lead its probe partition yet."""
    wait_until(
        lambda: _refusal(arena, node) is None,
        arena.patience * TAKE_LIMIT_S,
        lambda: f"{node.name} accepts no records: {_refusal(arena, node)}",
    )


@dataclass
class _Seen:
    """The effect of a broken disk on one broker."""

    refused_s: float | None = None  # seconds until it refused a record; None: it never did
    why: str = ""
    ended_s: float | None = None  # seconds until its process had ended; None: it still runs


@dataclass(frozen=True)
class DeadDisk(ABC):
    """A disk that accepts no more writes to the topics under test; `harm` is the kind of failure."""

    needs: ClassVar[type] = DiskedBroker
    ways: ClassVar[Mapping[str, str]] = WAYS
    bites_when: ClassVar[str] = (
        "each target refuses a record or has ended; if it has ended, other brokers lead its partitions"
    )

    @property
    @abstractmethod
    def harm(self) -> DiskHarm: ...

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = disked(nodes)
        for node in victims:
            wait_takes_records(arena, node)
        led = Leadership.of(arena, [node.name for node in victims])
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: _revive(arena, node, self.harm), victims)
            begun = time.monotonic()
            ways = {node.break_disk(DiskFault(self.harm, topics_prefix=arena.topic)) for node in victims}
            yield self._bite(arena, victims, led, begun, "+".join(sorted(ways)))

    def _bite(
        self, arena: Arena, victims: Sequence[DiskedBroker], led: Leadership, begun: float, way: str
    ) -> Bite:
        if not victims:
            return Bite(False, "there was no disk to break")
        seen = {node.name: _Seen() for node in victims}
        in_parallel(lambda node: _watch(arena, node, seen[node.name], begun), victims)
        unhurt = [name for name, each in seen.items() if each.refused_s is None and each.ended_s is None]
        if unhurt:
            return Bite(False, f"{', '.join(unhurt)} still accepts records", way=way)
        proof = "; ".join(f"{name} {_outcome(each)}" for name, each in seen.items())
        measured = {
            "refused": float(len(seen)),
            **_slowest("refused_s", [e.refused_s for e in seen.values()]),
        }
        if any(each.ended_s is None for each in seen.values()):
            return Bite(True, proof, {**measured, "ended": 0.0}, way)
        measured |= {"ended": float(len(seen)), **_slowest("ended_s", [e.ended_s for e in seen.values()])}
        moved = led.wait_moved(arena, begun)
        return Bite(moved.moved, f"{proof}; {moved.proof}", {**measured, **moved.measured}, way)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        victims = disked(nodes)

        def refusing() -> str | None:
            if down := not_running(victims):
                return down
            refusals = {node.name: _refusal(arena, node) for node in victims}
            return next((f"{name} refuses records: {why}" for name, why in refusals.items() if why), None)

        return wait_whole(arena, [node.name for node in nodes], refusing, "runs and accepts records again")


def _watch(arena: Arena, node: DiskedBroker, seen: _Seen, begun: float) -> None:
    """Append to the node's probe partition until its process ends or the time limit is reached."""

    def over() -> bool:
        now = time.monotonic() - begun
        if not node.running():
            seen.ended_s = now
            return True
        why = _refusal(arena, node)
        if why and seen.refused_s is None:
            seen.refused_s, seen.why = time.monotonic() - begun, why
        return False

    try:
        wait_until(over, arena.patience * _END_LIMIT_S, "")
    except WaitTimeout:
        return


def _refusal(arena: Arena, node: Node) -> str | None:
    try:
        arena.cluster.view().produce_round_trip_ms(node.name)
    except ClusterError as error:
        return str(error)
    return None


def _revive(arena: Arena, node: DiskedBroker, harm: DiskHarm) -> None:
    """Mend the disk, then start the broker if it has ended or is about to end."""
    node.mend_disk(harm)
    limit_s = arena.patience * MOVE_LIMIT_S
    try:
        wait_until(lambda: not node.running() or _refusal(arena, node) is None, limit_s, "")
    except WaitTimeout:
        node.kill()  # its folder stays offline until it is started again
    node.restart()


def _outcome(seen: _Seen) -> str:
    refused = (
        f"refused a record after {seen.refused_s:.2f} s ({seen.why})" if seen.refused_s is not None else ""
    )
    ended = (
        f"ended after {seen.ended_s:.2f} s"
        if seen.ended_s is not None
        else "still runs and keeps its partitions"
    )
    return f"{refused}, {ended}" if refused else ended


def _slowest(name: str, values: Sequence[float | None]) -> dict[str, float]:
    known = [value for value in values if value is not None]
    return {name: round(max(known), 3)} if known else {}
