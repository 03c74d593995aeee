"""Little CPU time or memory: the node runs, but slowly, as next to a neighbour that uses everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults import _short_of_memory
from faults._cases import Case
from faults._measure import able, wait_whole
from harness.contracts import Arena, Bite, Healing, MemoryStarvable, Node, Starvable
from harness.errors import FaultError, UsageError
from harness.targets import leader_of

_BEFORE_S = 1.5
_DURING_S = 3.0
_ABOVE = 0.02  # of a processor: the tolerance of the measurement
_TRIES = 4
_MORE = 1.5  # times its share: the least that a node uses that is not starved


@dataclass(frozen=True)
class Starve:
    """Leaves `cpu_share` of one processor. For the proof the node gets more work than that allows.

    With `memory_mb` it limits memory instead of CPU time: the node keeps the memory that it cannot release and at most
    `memory_mb` of page cache, or half of its page cache if that is less. Beyond that it waits, or is refused memory. A
    node that ends because of that is started again when the limit is removed.
    """

    cpu_share: float = 0.1
    memory_mb: float | None = None
    needs: ClassVar[type] = Starvable
    ways: ClassVar[Mapping[str, str]] = {
        "cgroup": "root, and a control group with a limit (version 1 or 2); for memory: containers, or processes of a cluster with Options(memory=True)",
        "signals": "nothing; not for memory",
    }
    bites_when: ClassVar[str] = (
        "under a load that needs more, the process gets its share of CPU time and no more; for memory: its limit was "
        "reached under load, and never before, or the process ended when memory was refused"
    )

    def __post_init__(self) -> None:
        if not 0.02 <= self.cpu_share <= 0.5:
            raise UsageError(
                f"starve: cpu_share={self.cpu_share:g} cannot be measured; choose 0.02 to 0.5 of a processor"
            )
        if self.memory_mb is not None and not 4 <= self.memory_mb <= 64:
            raise UsageError(f"starve: memory_mb={self.memory_mb:g} cannot be measured; choose 4 to 64")
        if self.memory_mb is not None:
            object.__setattr__(self, "needs", MemoryStarvable)

    def hold(self, arena: Arena, nodes: Sequence[Node]) -> AbstractContextManager[Bite]:
        if self.memory_mb is not None:
            return _short_of_memory.hold(arena, nodes, self.memory_mb)
        return self._hold_cpu(nodes)

    @contextmanager
    def _hold_cpu(self, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = _starvable(nodes)
        before = [self._unhindered(node) for node in targets]
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.feed)
            ways = [node.starve(self.cpu_share) for node in targets]
            yield self._bite(targets, before, ways)

    def _bite(self, targets: Sequence[Starvable], before: Sequence[float], ways: Sequence[str]) -> Bite:
        if not targets:
            return Bite(False, "there was no node to starve")
        try:
            during = [node.cpu_under_load(_DURING_S) for node in targets]
        except FaultError as error:  # the process ended, or accepts no connection any more
            return Bite(False, str(error), way=ways[0])
        proofs = [
            f"{node.name} under load used {much:.2f} of a processor, then {little:.2f}"
            for node, much, little in zip(targets, before, during, strict=True)
        ]
        bit = all(
            little <= self._most and much >= _MORE * self.cpu_share
            for much, little in zip(before, during, strict=True)
        )
        measured = {"cpu_before": round(min(before), 3), "cpu_during": round(max(during), 3)}
        return Bite(bit, "; ".join(proofs), measured, way=ways[0])

    def _unhindered(self, node: Starvable) -> float:
        """Return the CPU share that the node uses without a limit; on a busy machine it takes a while to reach it."""
        used = 0.0
        for _ in range(_TRIES):
            used = max(used, node.cpu_under_load(_BEFORE_S))
            if used >= 2 * _MORE * self.cpu_share:
                break
        return used

    @property
    def _most(self) -> float:
        return self.cpu_share * 1.2 + _ABOVE

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        if self.memory_mb is not None:
            return _short_of_memory.healed(arena, nodes)
        targets = _starvable(nodes)
        used: dict[str, float] = {}

        def hungry() -> str | None:
            try:
                used.update({node.name: node.cpu_under_load(_BEFORE_S) for node in targets})
            except FaultError as error:
                return str(error)
            few = [f"{name} {share:.2f}" for name, share in used.items() if share < _MORE * self.cpu_share]
            return f"under load used only {', '.join(few)} of a processor" if few else None

        names = [node.name for node in nodes]
        healing = wait_whole(arena, names, hungry, "gets as much CPU time as it wants")
        after = {"cpu_after": round(min(used.values()), 3)} if used else {}
        return replace(healing, measured={**healing.measured, **after})

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "starve", "cpu_share": self.cpu_share, "memory_mb": self.memory_mb}

    def __str__(self) -> str:
        return "starve" if self.memory_mb is None else "starve-memory"


def _starvable(nodes: Sequence[Node]) -> list[Starvable]:
    return able(nodes, Starvable, "{} cannot be starved")


cases = (
    Case(Starve(), leader_of(0), hold_s=3.0),
    Case(Starve(memory_mb=8), leader_of(0), hold_s=3.0),
)
fault_class = Starve
