"""Damage to the log files of stopped brokers: which files, how far a log goes, and what has to be true again after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faults._measure import MOVE_LIMIT_S, in_parallel, not_running, wait_whole
from faults.kill import killable
from harness.contracts import Arena, Healing, Killable, Node, ReplicaLogs
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.kafka.checksums import bad_batches, spans
from harness.waiting import wait_until


@dataclass(frozen=True)
class Log:
    """What one broker has of one partition."""

    broker: str
    partition: int
    folder: Path

    def __str__(self) -> str:
        return f"{self.folder.name} at {self.broker}"

    def segments(self) -> list[Path]:
        """Those with something in them, oldest first."""
        try:
            found = [path for path in self.folder.glob("*.log") if path.stat().st_size]
        except FileNotFoundError:  # the broker has just removed one
            return self.segments()
        return sorted(found, key=lambda path: int(path.stem))

    def end(self) -> int:
        """The offset after the last whole batch."""
        filled = self.segments()
        if not filled:
            return 0
        batches = list(spans(filled[-1]))
        return batches[-1].last + 1 if batches else int(filled[-1].stem)

    def bad(self) -> int:
        """How many batches have a checksum that is not that of their bytes."""
        return sum(len(bad_batches(segment)) for segment in self.segments())


def logs_of(arena: Arena, names: Sequence[str]) -> list[Log]:
    """What these brokers have of the topic under test."""
    cluster = arena.cluster
    if not isinstance(cluster, ReplicaLogs):
        raise FaultError("the log files of this cluster's brokers cannot be reached from here")
    return [
        Log(broker, state.partition, folder)
        for state in cluster.view().partitions(arena.topic)
        for broker, folder in cluster.replica_folders(arena.topic, state.partition).items()
        if broker in names
    ]


def victims_of(arena: Arena, nodes: Sequence[Node]) -> list[Killable]:
    """The targets, if they are brokers whose files can be reached."""
    victims = killable(nodes)
    own = {node.name for node in arena.cluster.nodes()}
    if strangers := [node.name for node in victims if node.name not in own]:
        raise FaultError(f"{', '.join(strangers)}: not of the cluster, so there is no log to damage")
    return victims


def kill_and_wait(arena: Arena, victims: Sequence[Killable]) -> None:
    """Kill them and wait until the cluster has given them up.

    A broker that came back before that could still be the leader, and make the others forget what it has lost. After
    a kill there is no mark of a clean stop, so Kafka looks through the end of the log when it starts.
    """
    names = {node.name for node in victims}
    in_parallel(lambda node: node.kill(), victims)

    def given_up() -> bool:
        return not names & set(arena.cluster.view().registered_brokers())

    try:
        wait_until(given_up, MOVE_LIMIT_S, f"{', '.join(sorted(names))} still registered", every_s=0.1)
    except WaitTimeout as error:
        raise FaultError(str(error)) from error


def wait_same(arena: Arena, nodes: Sequence[Node]) -> Healing:
    """Wait until they run, are in sync, have all that the leader has, and no copy anywhere is damaged."""
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
        told = ", ".join(f"{count} in {name}" for name, count in bad.items())
        return replace(healing, healed=False, proof=f"batches with a wrong checksum: {told}")
    proof = f"{healing.proof}; all checksums of {len(logs)} copies are right"
    return replace(healing, proof=proof, measured={**healing.measured, "bad_batches": 0.0})


def _behind(arena: Arena, names: Sequence[str]) -> str | None:
    """The leader is read first, so that what is appended meanwhile does not count."""
    leaders = {state.partition: state.leader for state in arena.cluster.view().partitions(arena.topic)}
    own = logs_of(arena, names)
    for log in own:
        (leading,) = [each for each in logs_of(arena, [leaders[log.partition] or log.broker])
                      if each.partition == log.partition]  # fmt: skip
        wanted = leading.end()
        if (end := log.end()) < wanted:
            return f"{log} ends at {end}, that of the leader at {wanted}"
    return None
