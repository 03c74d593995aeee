"""A byte inside a batch changes while the broker is down, as on a decaying disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from faults._cases import Case
from faults._damage import Log, kill_and_wait, logs_of, victims_of, wait_same
from harness.contracts import Arena, Bite, Healing, Killable, Node
from harness.errors import UsageError
from harness.kafka.batches import RECORDS_AT, bad_batches, batches_of
from harness.targets import follower_of
from harness.waiting import in_parallel

SEGMENTS = ("newest", "oldest")


@dataclass(frozen=True)
class FlipBits:
    """Kills the targets, inverts one byte in the newest or oldest segment of each partition, starts them again.

    Kafka checks the segments that may not have been flushed: there it cuts the log at the bad batch and fetches the
    rest from the leader. It never checks older segments by itself: the byte stays, and a leader sends the batch to
    consumers, which refuse it. The undo restores the byte where it is still wrong.
    """

    segment: str = "newest"
    needs: ClassVar[type] = Killable
    reads_logs: ClassVar[bool] = True
    ways: ClassVar[Mapping[str, str]] = {"files": "brokers whose log folders are on this machine"}
    bites_when: ClassVar[str] = (
        "each target has a batch with a wrong checksum while it is down, and starts again"
    )

    def __post_init__(self) -> None:
        if self.segment not in SEGMENTS:
            raise UsageError(
                f"flip_bits: unknown segment {self.segment!r}; choose one of {', '.join(SEGMENTS)}"
            )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = victims_of(arena, nodes)
        flips: list[Flip] = []
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: node.restart(), victims)
            undo.callback(_put_back, flips)
            yield self._damage(arena, victims, flips)

    def _damage(self, arena: Arena, victims: Sequence[Killable], flips: list[Flip]) -> Bite:
        if not victims:
            return Bite(False, "there was no log to damage")
        names = [node.name for node in victims]
        logs = logs_of(arena, names)
        kill_and_wait(arena, victims)
        for log in logs:
            if (flip := self._choose(log)) is not None:
                flips.append(flip)  # before the change: put_back leaves correct batches alone
                flip.invert()
        bad = {flip.log: flip.log.bad() for flip in flips}
        in_parallel(lambda node: node.restart(), victims)
        idle = [name for name in names if not any(count for log, count in bad.items() if log.broker == name)]
        if idle:
            return Bite(False, f"{', '.join(idle)} had nothing of {arena.topic} to damage", way="files")
        left = {log: log.bad() for log in bad}
        proofs = [f"checksum of the batch of offset {flip.base} wrong in {flip.log}" for flip in flips]
        found = sum(bad.values()) - sum(left.values())
        proofs.append(f"started again; Kafka has cut off {found} and left {sum(left.values())} of them")
        measured = {"bad_batches": float(sum(bad.values())), "bad_after_start": float(sum(left.values()))}
        return Bite(True, "; ".join(proofs), measured, way="files")

    def _choose(self, log: Log) -> Flip | None:
        """Choose the byte in the middle of the records of the middle batch; None for an empty log."""
        filled = log.segments()
        if not filled:
            return None
        segment = filled[-1 if self.segment == "newest" else 0]
        batches = list(batches_of(segment))
        if not batches:
            return None
        batch = batches[len(batches) // 2]
        return Flip(log, segment, batch.position + (RECORDS_AT + batch.size) // 2, batch.base)

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return wait_same(arena, nodes)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "flip_bits", "segment": self.segment}

    def __str__(self) -> str:
        return "flip_bits" if self.segment == "newest" else f"flip_bits-{self.segment}"


@dataclass(frozen=True)
class Flip:
    log: Log
    segment: Path
    position: int
    base: int  # offset of the batch

    def invert(self) -> None:
        with self.segment.open("r+b") as file:
            file.seek(self.position)
            (byte,) = file.read(1)
            file.seek(self.position)
            file.write(bytes([byte ^ 0xFF]))

    def put_back(self) -> None:
        """Restore the byte if that batch is still wrong: Kafka may have cut it off and fetched it again."""
        if not self.segment.is_file():
            return
        wrong = [batch for batch in bad_batches(self.segment) if batch.base == self.base]
        if any(batch.position <= self.position < batch.position + batch.size for batch in wrong):
            self.invert()


def _put_back(flips: Sequence[Flip]) -> None:
    for flip in flips:
        flip.put_back()


cases = (Case(FlipBits(), follower_of(0)),)
fault_class = FlipBits
