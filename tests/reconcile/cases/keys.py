"""The order of records with the same key."""

from __future__ import annotations

from pathlib import Path

from harness.ledger.literal_run import LiteralRun
from tests.reconcile.cases.base import READER, Case, case, message


@case
def key_reordered_by_a_late_write_of_a_dead_producer(root: Path) -> Case:
    """The second life of a producer goes on; then a record of its first life arrives."""
    run = LiteralRun(root)
    run.session(1, producer="producer-1", incarnation=0)
    run.session(2, producer="producer-1", incarnation=1)
    early = run.send(1, 0, key=3, chosen=True)
    run.append(run.send(2, 0, key=4, chosen=True), 0)
    run.append(run.send(2, 0, key=3, chosen=True), 0)
    run.append(early, 0)
    return run, {("key_reordered", ("producer-1.0-0", "producer-1.1-1"), (2, 1))}


@case
def key_reordered_after_an_ack(root: Path) -> Case:
    """The second producer sent it when the first had had its ack for a second."""
    run = LiteralRun(root)
    run.session(1)
    run.session(2)
    first = run.send(1, 0, key=3, chosen=True)
    run.ack(first, 0, 5)
    run.tick(1)
    second = run.send(2, 0, key=3, chosen=True)
    run.append(second, 0)
    run.log.append(first.at(0, 5))
    return run, {("key_reordered", (message(1, 0), message(2, 0)), (5, 0))}


@case
def keys_of_two_producers_at_once(root: Path) -> Case:
    """The sends are concurrent: their order is unknown."""
    run = LiteralRun(root)
    run.session(1)
    run.session(2)
    sent = [run.send(number, 0, key=3, chosen=True) for number in (1, 2, 1, 2)]
    for number in (1, 0, 3, 2):
        run.append(sent[number], 0)
    return run, set()


@case
def key_reordered_by_new_partitions(root: Path) -> Case:
    """The key has moved, and the group was given the new partition first."""
    run = LiteralRun(root)
    run.manifest["topic_unchanged"] = False
    run.session(1)
    old, new = run.write(1, 2, 0, key=3, chosen=True), run.write(1, 2, 1, key=3, chosen=True)
    run.give(READER, old[0], new[0], old[1], new[1])
    return run, {("key_reordered", (message(1, 1), message(1, 2)), (1, 0))}
