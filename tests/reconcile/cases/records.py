"""Records that are damaged, in the wrong place, or not the only one at their offset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import BAD_KEY, BAD_PAYLOAD
from tests.reconcile.cases.base import Case, case, message, plain


@case
def corrupted(root: Path) -> Case:
    """Its payload is unreadable; the ack of its position names it. It is damaged, not lost and not a phantom."""
    run = plain(root)
    harmed = run.log[5]
    run.log[5] = replace(harmed, flags=BAD_PAYLOAD, session=0, seq=0, key=0, txn=0, intended_partition=0)
    return run, {("corrupted", (message(1, 5),), (5,))}


@case
def corrupted_key(root: Path) -> Case:
    run = plain(root)
    run.log[5] = replace(run.log[5], flags=BAD_KEY)
    return run, {("corrupted", (message(1, 5),), (5,))}


@case
def corrupted_against_the_ledger(root: Path) -> Case:
    """Intact by its own checksum, but sent with another key."""
    run = plain(root)
    run.log[5] = replace(run.log[5], key=9)
    return run, {("corrupted", (message(1, 5),), (5,))}


@case
def misplaced(root: Path) -> Case:
    run = plain(root)
    run.append(run.send(1, 0), partition=2)
    return run, {("misplaced", (message(1, 10),), (0,))}


@case
def misplaced_key(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 2, 0, key=4, chosen=True)
    run.write(1, 1, 1, key=5, chosen=True)
    run.write(1, 1, 2, key=4, chosen=True)
    return run, {("misplaced", (message(1, 0), message(1, 3)), (0, 0))}


@case
def keys_may_be_spread_by_their_sender(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 2, 0, key=4)
    run.write(1, 2, 1, key=4)
    return run, set()


@case
def keys_may_move_when_partitions_are_added(root: Path) -> Case:
    run, _ = misplaced_key(root)
    run.manifest["topic_unchanged"] = False
    return run, set()


@case
def offset_conflict(root: Path) -> Case:
    """A new leader wrote over what the old one had acked."""
    run = plain(root)
    run.log[7] = replace(run.log[7], seq=10)
    run.ack(run.send(1, 0), 0, 7)
    run.deliveries = [("consumer-1.0", r) for r in run.log]
    return run, {
        ("offset_conflict", (message(1, 10), message(1, 7)), (7,)),
        ("lost", (message(1, 7),), (7,)),
        ("reordered", (message(1, 8), message(1, 10)), (8, 7)),
        ("reordered", (message(1, 9), message(1, 10)), (9, 7)),
    }


@case
def offset_conflict_between_readings(root: Path) -> Case:
    run = plain(root)
    run.committed = list(run.log)
    other = run.send(1, 0)
    run.committed[7] = replace(run.log[7], seq=other.seq)
    return run, {
        ("offset_conflict", (message(1, 10), message(1, 7)), (7,)),
        ("reordered", (message(1, 8), message(1, 10)), (8, 7)),
        ("reordered", (message(1, 9), message(1, 10)), (9, 7)),
    }
