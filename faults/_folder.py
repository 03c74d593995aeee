"""Shared by faults on one log folder: it accepts no more writes, while the broker goes on with its other folders."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from faults._disk import TAKE_LIMIT_S
from faults._measure import MOVE_LIMIT_S, able, not_running, wait_whole
from harness.contracts import Arena, Bite, DiskFault, DiskHarm, FolderBreakable, Healing, Node, PartitionState
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.waiting import in_parallel, wait_until

_REFUSE_LIMIT_S = 10.0


@dataclass(frozen=True)
class Folder:
    """One log folder of a broker, and the partitions of the topic under test inside and outside of it."""

    node: FolderBreakable
    name: str
    inside: tuple[PartitionState, ...]
    outside: tuple[PartitionState, ...]

    @classmethod
    def of(cls, arena: Arena, node: FolderBreakable, number: int) -> Folder:
        names = node.folders()
        if number > len(names):
            raise FaultError(
                f"{node.name} has no log folder {number}; start the cluster with Options(log_folders={number})"
            )
        name = names[number - 1]
        there = node.partitions_in(name)
        mine = [
            state for state in arena.cluster.view().partitions(arena.topic) if node.name in state.replicas
        ]
        inside = [state for state in mine if f"{state.topic}-{state.partition}" in there]
        return cls(node, name, tuple(inside), tuple(state for state in mine if state not in inside))

    @property
    def led(self) -> list[PartitionState]:
        return [state for state in self.inside if state.leader == self.node.name]

    @property
    def kept(self) -> list[PartitionState]:
        return [state for state in self.outside if state.leader == self.node.name]

    def refusal(self, name: str) -> str | None:
        """Return why a log folder of the broker refuses a record; None if it accepts it."""
        try:
            self.node.append_to(name)
        except ClusterError as error:
            return str(error)
        return None

    def left(self, arena: Arena) -> bool:
        """Return whether no partition uses the copy inside any more, as leader or in-sync replica."""
        try:
            now = _by_partition(arena)
        except ClusterError:
            return False
        states = [now[state.partition] for state in self.inside if state.partition in now]
        return len(states) == len(self.inside) and all(
            # The last in-sync replica stays in the list, but the partition has no leader.
            state.leader != self.node.name and (self.node.name not in state.in_sync or state.leader is None)
            for state in states
        )

    def harm_elsewhere(self, arena: Arena) -> str | None:
        """Describe a change to the broker or to its other folders; None if they are as before."""
        if not self.node.running():
            return f"{self.node.name} has ended"
        for name in self.node.folders():
            if name != self.name and (why := self.refusal(name)):
                return f"log folder {name} of {self.node.name} accepts no record either: {why}"
        now = _by_partition(arena)
        for state in self.outside:
            after = now[state.partition]
            if self.node.name not in after.in_sync:
                return f"{self.node.name} is not in sync with {state.topic}-{state.partition} any more"
            if state in self.kept and after.leader != self.node.name:
                return f"{self.node.name} does not lead {state.topic}-{state.partition} any more"
        return None


@contextmanager
def broken_folder(arena: Arena, nodes: Sequence[Node], harm: DiskHarm, number: int) -> Iterator[Bite]:
    victims = _foldered(nodes)
    for node in victims:
        _wait_takes(arena, node)
    folders = [Folder.of(arena, node, number) for node in victims]
    with ExitStack() as undo:
        undo.callback(in_parallel, lambda node: _revive(node, harm), victims)
        begun = time.monotonic()
        ways = {
            folder.node.break_disk(DiskFault(harm, topics_prefix=arena.topic, folder=folder.name))
            for folder in folders
        }
        yield _bite(arena, folders, begun, "+".join(sorted(ways)))


def _bite(arena: Arena, folders: Sequence[Folder], begun: float, way: str) -> Bite:
    if not folders:
        return Bite(False, "there was no log folder to break", way=way)
    bites = [_bite_of_one(arena, folder, begun) for folder in folders]
    without = [bite.proof for bite in bites if not bite.bit]
    if without:
        return Bite(False, "; ".join(without), way=way)
    worst = {
        name: (max if name.endswith("_s") else sum)(bite.measured[name] for bite in bites)
        for name in bites[0].measured
    }
    return Bite(True, "; ".join(bite.proof for bite in bites), worst, way)


def _bite_of_one(arena: Arena, folder: Folder, begun: float) -> Bite:
    name = folder.node.name
    if not folder.inside:
        return Bite(False, f"log folder {folder.name} of {name} has nothing of {arena.topic}")
    try:
        why = wait_until(lambda: folder.refusal(folder.name), arena.patience * _REFUSE_LIMIT_S, "")
        refused_s = time.monotonic() - begun
    except WaitTimeout:
        return Bite(False, f"log folder {folder.name} of {name} still accepts records")
    move_limit_s = arena.patience * MOVE_LIMIT_S
    try:
        wait_until(lambda: folder.left(arena), move_limit_s, "")
        moved_s = time.monotonic() - begun
    except WaitTimeout:
        inside = ", ".join(f"{state.topic}-{state.partition}" for state in folder.inside)
        return Bite(False, f"after {move_limit_s:g} s {name} is still leader or in sync for {inside}")
    if harmed := folder.harm_elsewhere(arena):
        return Bite(False, harmed)
    proof = (
        f"log folder {folder.name} of {name} refuses records ({why}), {name} still runs;"
        f" {len(folder.inside)} partition(s) in it do without {name} after {moved_s:.1f} s, of which it led"
        f" {len(folder.led)}; {len(folder.outside)} elsewhere are as they were, of which it leads {len(folder.kept)}"
    )
    measured = {
        "refused_s": round(refused_s, 3),
        "leader_moved_s": round(moved_s, 3),
        "partitions_offline": float(len(folder.inside)),
        "partitions_moved": float(len(folder.led)),
        "partitions_kept": float(len(folder.outside)),
        "leaders_kept": float(len(folder.kept)),
    }
    return Bite(True, proof, measured)


def folder_healed(arena: Arena, nodes: Sequence[Node]) -> Healing:
    victims = _foldered(nodes)

    def refusing() -> str | None:
        if down := not_running(victims):
            return down
        dead = [node.name for node in victims if not _take(node)]
        return f"a log folder of {', '.join(dead)} refuses records" if dead else None

    names = [node.name for node in nodes]
    return wait_whole(arena, names, refusing, "runs and accepts records in each log folder again")


def _revive(node: FolderBreakable, harm: DiskHarm) -> None:
    """Mend the disk and restart the broker: a folder that Kafka took offline stays offline until a restart."""
    node.mend_disk(harm)
    if node.running():
        try:
            node.shut_down()
        except WaitTimeout:
            node.kill()
    node.restart()


def _wait_takes(arena: Arena, node: FolderBreakable) -> None:
    """Wait until every folder accepts records: a broker that has just started does not lead its probe partitions yet."""
    limit_s = arena.patience * TAKE_LIMIT_S
    wait_until(lambda: _take(node), limit_s, f"a log folder of {node.name} accepts no records")


def _take(node: FolderBreakable) -> bool:
    try:
        for folder in node.folders():
            node.append_to(folder)
    except ClusterError:
        return False
    return True


def _by_partition(arena: Arena) -> Mapping[int, PartitionState]:
    return {state.partition: state for state in arena.cluster.view().partitions(arena.topic)}


def _foldered(nodes: Sequence[Node]) -> list[FolderBreakable]:
    return able(nodes, FolderBreakable, "{} has no log folders that can be broken one by one")
