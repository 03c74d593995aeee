"""Shared by faults that damage the log files of stopped brokers: the files, their end offsets, and the check after healing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faults._measure import MOVE_LIMIT_S, not_running, wait_whole
from faults.kill import killable
from harness.contracts import Arena, Healing, Killable, Node, ReplicaLogs
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.kafka.batches import bad_batches, batches_of
from harness.waiting import in_parallel, wait_until


@dataclass(frozen=True)
class Log:
    """One broker's copy of one partition."""

    broker: str
    partition: int
    folder: Path

    def __str__(self) -> str:
        return f"{self.folder.name} at {self.broker}"

    def segments(self) -> list[Path]:
        """Return the segments that are not empty, oldest first."""
        try:
            found = [path for path in self.folder.glob("*.log") if path.stat().st_size]
        except FileNotFoundError:  # the broker has just removed a segment
            return self.segments()
        return sorted(found, key=lambda path: int(path.stem))

    def end(self) -> int:
        """Return the offset after the last complete batch."""
        filled = self.segments()
        if not filled:
            return 0
        batches = list(batches_of(filled[-1]))
        return batches[-1].last + 1 if batches else int(filled[-1].stem)

    def bad(self) -> int:
        """Count the batches whose checksum does not match their bytes."""
        return sum(len(bad_batches(segment)) for segment in self.segments())


def logs_of(arena: Arena, names: Sequence[str]) -> list[Log]:
    """Return these brokers' copies of the topic under test."""
    cluster = arena.cluster
    if not isinstance(cluster, ReplicaLogs):
        raise FaultError("the log files of this cluster's brokers are not readable from this machine")
    return [
        Log(broker, state.partition, folder)
        for state in cluster.view().partitions(arena.topic)
        for broker, folder in cluster.replica_folders(arena.topic, state.partition).items()
        if broker in names
    ]


def victims_of(arena: Arena, nodes: Sequence[Node]) -> list[Killable]:
    """Return the targets; raise FaultError unless all of them are brokers of this cluster that can be killed."""
    victims = killable(nodes)
    own = {node.name for node in arena.cluster.nodes()}
    if strangers := [node.name for node in victims if node.name not in own]:
        raise FaultError(f"{', '.join(strangers)}: not a node of the cluster, so it has no log to damage")
    return victims


def kill_and_wait(arena: Arena, victims: Sequence[Killable]) -> None:
    """Kill the victims and wait until none of them is registered with the cluster.

    A broker that returned earlier could still be the leader and make its followers truncate what it has lost. After
    a kill there is no clean-shutdown file, so Kafka checks the end of the log when it starts.
    """
    names = {node.name for node in victims}
    in_parallel(lambda node: node.kill(), victims)

    def given_up() -> bool:
        return not names & set(arena.cluster.view().registered_brokers())

    try:
        limit_s = arena.patience * MOVE_LIMIT_S
        wait_until(given_up, limit_s, f"{', '.join(sorted(names))} still registered", every_s=0.1)
    except WaitTimeout as error:
        raise FaultError(str(error)) from error


def wait_same(arena: Arena, nodes: Sequence[Node]) -> Healing:
    """Wait until the nodes run, are in sync and end where the leader ends, then check that no copy is damaged."""
    victims = killable(nodes)
    names = [node.name for node in nodes]

    def different() -> str | None:
        try:
            return not_running(victims) or _behind(arena, names)
        except ClusterError as error:
            return str(error)

    healing = wait_whole(arena, names, different, "has what the leader has")
    if not healing.healed:
        return healing
    logs = logs_of(arena, [node.name for node in arena.cluster.nodes()])
    bad = {str(log): count for log in logs if (count := log.bad())}
    if bad:
        listed = ", ".join(f"{count} in {name}" for name, count in bad.items())
        return replace(healing, healed=False, proof=f"batches with a wrong checksum: {listed}")
    proof = f"{healing.proof}; all checksums of {len(logs)} copies are right"
    return replace(healing, proof=proof, measured={**healing.measured, "bad_batches": 0.0})


def _behind(arena: Arena, names: Sequence[str]) -> str | None:
    """Describe the first copy that ends before the leader's; None if there is none.

    The leader's end is read first, so records appended meanwhile do not count.
    """
    leaders = {state.partition: state.leader for state in arena.cluster.view().partitions(arena.topic)}
    own = logs_of(arena, names)
    for log in own:
        (leading,) = [each for each in logs_of(arena, [leaders[log.partition] or log.broker])
                      if each.partition == log.partition]  # fmt: skip
        wanted = leading.end()
        if (end := log.end()) < wanted:
            return f"{log} ends at {end}, the leader's log at {wanted}"
    return None
