"""Loss of power: the process ends, and everything that it wrote but did not fsync is lost.

Kafka acknowledges before it fsyncs, and relies on other copies: it survives when one broker loses power, not when all do at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._disk import WAYS, wait_takes_records
from faults._measure import Leadership, able, not_running, wait_whole
from harness.contracts import Arena, Bite, Healing, Node, PowerLosable
from harness.targets import leader_of
from harness.waiting import in_parallel


@dataclass(frozen=True)
class PowerLoss:
    """The undo starts the broker again, on a disk in the state of each file's last fsync."""

    needs: ClassVar[type] = PowerLosable
    ways: ClassVar[Mapping[str, str]] = {"fuse": WAYS["fuse"]}
    bites_when: ClassVar[str] = (
        "every process has ended, each has lost bytes that it had written, and other brokers lead what it led"
    )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = _losable(nodes)
        led = Leadership.of(arena, [node.name for node in victims])
        for node in victims:
            if node.running():  # so that there are acknowledged bytes to lose that are not fsynced
                wait_takes_records(arena, node)
        with ExitStack() as undo:
            # In parallel: a quorum that went down as a whole only comes back as a whole.
            undo.callback(in_parallel, lambda node: node.restart(), victims)
            begun = time.monotonic()
            lost: dict[str, Mapping[str, float]] = {}
            in_parallel(lambda node: lost.update({node.name: node.lose_power()}), victims)
            yield self._bite(arena, victims, led, lost, begun)

    def _bite(
        self,
        arena: Arena,
        victims: Sequence[PowerLosable],
        led: Leadership,
        lost: Mapping[str, Mapping[str, float]],
        begun: float,
    ) -> Bite:
        if not victims:
            return Bite(False, "there was no node to cut the power of")
        alive = [node.name for node in victims if node.running()]
        if alive:
            return Bite(False, f"{', '.join(alive)} still runs", way="fuse")
        kept = [name for name, each in lost.items() if not each["bytes_lost"]]
        if kept:
            return Bite(False, f"{', '.join(kept)} lost nothing: all was fsynced", way="fuse")
        proofs = [
            f"{name} lost {each['bytes_lost']:.0f} bytes that were not fsynced,"
            f" {each['records_lost']:.0f} records of {each['partitions_shortened']:.0f} partitions among them"
            for name, each in sorted(lost.items())
        ]
        measured = {key: sum(each[key] for each in lost.values()) for key in lost[victims[0].name]}
        moved = led.wait_moved(arena, begun)
        return Bite(moved.moved, "; ".join([*proofs, moved.proof]), {**measured, **moved.measured}, "fuse")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        victims = _losable(nodes)
        names = [node.name for node in nodes]
        return wait_whole(arena, names, lambda: not_running(victims), "runs and takes part again")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "power_loss"}

    def __str__(self) -> str:
        return "power_loss"


def _losable(nodes: Sequence[Node]) -> list[PowerLosable]:
    return able(nodes, PowerLosable, "{} cannot lose power")


cases = (Case(PowerLoss(), leader_of(0)),)
fault_class = PowerLoss
