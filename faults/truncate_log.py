"""The end of a log is lost: its last bytes are cut off while the broker is down, as after a disk crash."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from faults._cases import Case
from faults._damage import Log, kill_and_wait, logs_of, victims_of, wait_same
from harness.contracts import Arena, Bite, Healing, Killable, Node
from harness.errors import UsageError
from harness.targets import follower_of
from harness.waiting import in_parallel


@dataclass(frozen=True)
class TruncateLog:
    """Kills the targets, cuts `cut_bytes` off the newest segment of each partition of the topic, starts them again.

    The cut may end inside a batch; Kafka drops the rest of that batch. A former leader comes back as a follower, since
    another broker was elected, and fetches the lost records from it. Records are lost only if all copies are targets.
    """

    cut_bytes: int = 4096
    needs: ClassVar[type] = Killable
    reads_logs: ClassVar[bool] = True
    ways: ClassVar[Mapping[str, str]] = {"files": "brokers whose log folders are on this machine"}
    bites_when: ClassVar[str] = (
        "the log of each target ends at a lower offset than before, and the broker starts with it"
    )

    def __post_init__(self) -> None:
        if self.cut_bytes < 1:
            raise UsageError(f"truncate_log: cut_bytes={self.cut_bytes} cuts nothing; set at least 1")

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = victims_of(arena, nodes)
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: node.restart(), victims)
            yield self._damage(arena, victims)

    def _damage(self, arena: Arena, victims: Sequence[Killable]) -> Bite:
        if not victims:
            return Bite(False, "there was no log to cut")
        names = [node.name for node in victims]
        logs = logs_of(arena, names)
        kill_and_wait(arena, victims)
        lost = {log: self._cut(log) for log in logs if log.segments()}
        in_parallel(lambda node: node.restart(), victims)
        idle = [name for name in names if not any(lost[log] for log in lost if log.broker == name)]
        if idle:
            return Bite(False, f"{', '.join(idle)} had nothing of {arena.topic} to cut", way="files")
        proofs = [f"{log} lost its last {records} records" for log, records in lost.items() if records]
        measured = {"logs_cut": float(len(proofs)), "records_cut": float(sum(lost.values()))}
        return Bite(True, f"{'; '.join(proofs)}; started again", measured, way="files")

    def _cut(self, log: Log) -> int:
        """Cut the end off the log; return the number of records that are lost."""
        before = log.end()
        segment = log.segments()[-1]
        os.truncate(segment, max(0, segment.stat().st_size - self.cut_bytes))
        first = int(segment.stem)
        return before - max(first, log.end())

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return wait_same(arena, nodes)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "truncate_log", "cut_bytes": self.cut_bytes}

    def __str__(self) -> str:
        return "truncate_log"


cases = (Case(TruncateLog(), follower_of(0)),)
fault_class = TruncateLog
