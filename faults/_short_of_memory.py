"""A limit on memory: the fault `starve` with `memory_mb`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from faults._measure import able, wait_whole
from harness.contracts import Arena, Bite, Healing, Killable, Memory, MemoryStarvable, Node
from harness.errors import FaultError, WaitTimeout
from harness.waiting import wait_until

_BEFORE_S = 1.5
_DURING_S = 3.0
_AFTER_S = 1.0
_GO_ON_LIMIT_S = 30.0
_SLACK_MB = 1.0  # the kernel counts in bundles


@contextmanager
def hold(arena: Arena, nodes: Sequence[Node], left_mb: float) -> Iterator[Bite]:
    targets = able(nodes, MemoryStarvable, "memory of {} cannot be taken away")
    if not targets:
        yield Bite(False, "there was no node to take memory from")
        return
    before = [node.memory_under_load(_BEFORE_S) for node in targets]
    with ExitStack() as undo:
        for node in targets:
            undo.callback(_give_back, arena, node)
        ways = [node.take_memory(left_mb) for node in targets]
        yield _bite(targets, before, ways[0])


def _give_back(arena: Arena, node: MemoryStarvable) -> None:
    """Remove the limit and restart the node if it has ended, or ends now because it was refused memory before."""
    node.give_memory()
    if not isinstance(node, Killable):
        return
    limit_s = arena.patience * _GO_ON_LIMIT_S
    try:
        wait_until(lambda: not node.running() or _goes_on(node), limit_s, "")
    except WaitTimeout:
        node.kill()
    node.restart()


def _goes_on(node: MemoryStarvable) -> bool:
    try:
        node.memory_under_load(_AFTER_S)
    except FaultError:
        return False
    return not isinstance(node, Killable) or node.running()


def _bite(targets: Sequence[MemoryStarvable], before: Sequence[Memory], way: str) -> Bite:
    try:
        during = [node.memory_under_load(_DURING_S) for node in targets]
    except FaultError as error:  # the process ended, or accepts no connection any more
        dead = [node.name for node in targets if isinstance(node, Killable) and not node.running()]
        # A process that touches memory only waits, but the kernel refuses system calls that need memory, and some
        # processes end when that happens.
        ended = f"{', '.join(dead)} ended when memory was refused; " if dead else ""
        return Bite(bool(dead), f"{ended}{error}", {"ended": float(len(dead))}, way=way)
    proofs = [
        f"{node.name} had {much.has_mb:.0f} MB ({much.cache_mb:.0f} of page cache), then under load {little.has_mb:.0f}"
        f" ({little.cache_mb:.0f}) of {little.limit_mb or 0:.0f}, which was reached {little.refused} times"
        for node, much, little in zip(targets, before, during, strict=True)
    ]
    bit = all(
        little.limit_mb is not None
        and little.has_mb <= little.limit_mb + _SLACK_MB
        and little.refused > 0 == much.refused
        for much, little in zip(before, during, strict=True)
    )
    measured = {
        "memory_mb_before": round(max(each.has_mb for each in before), 1),
        "memory_mb_during": round(max(each.has_mb for each in during), 1),
        "page_cache_mb_before": round(max(each.cache_mb for each in before), 1),
        "page_cache_mb_during": round(max(each.cache_mb for each in during), 1),
        "refused_before": float(max(each.refused for each in before)),
        "refused_during": float(min(each.refused for each in during)),
    }
    return Bite(bit, "; ".join(proofs), measured, way=way)


def healed(arena: Arena, nodes: Sequence[Node]) -> Healing:
    targets = able(nodes, MemoryStarvable, "memory of {} cannot be taken away")
    seen: dict[str, Memory] = {}

    def short() -> str | None:
        try:
            seen.update({node.name: node.memory_under_load(_BEFORE_S) for node in targets})
        except FaultError as error:
            return str(error)
        few = [name for name, memory in seen.items() if memory.limit_mb is not None or memory.refused]
        return f"{', '.join(few)} still short of memory" if few else None

    names = [node.name for node in nodes]
    healing = wait_whole(arena, names, short, "gets as much memory as it wants")
    after = {"refused_after": float(max(each.refused for each in seen.values()))} if seen else {}
    return replace(healing, measured={**healing.measured, **after})
