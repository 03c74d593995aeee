"""Transactions that are read too early, in part, or behind the back of their producer."""

from __future__ import annotations

from pathlib import Path

from harness.contracts import Mode
from harness.ledger.literal_run import LiteralRun
from tests.reconcile.cases.base import READER, Case, case, message, transactions


@case
def premature_read(root: Path) -> Case:
    """Given to the group before its sender asked to commit it."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    made = [run.append(run.send(1, 0, txn=1)) for _ in range(3)]
    run.assign(READER, 0)
    run.give(READER, made[0], made[1])
    run.end(1, 1)
    run.give(READER, made[2])
    return run, {("premature_read", (message(1, n),), (n,)) for n in (0, 1)}


@case
def torn(root: Path) -> Case:
    run = transactions(root)
    run.committed = [r for r in run.log if r.txn in (1, 3) and r.seq != 7]
    run.log = [r for r in run.log if r.seq != 7]
    return run, {("torn", (message(1, 7),), (9,)), ("lost", (message(1, 7),), (9,))}


@case
def torn_by_a_late_abort(root: Path) -> Case:
    """It is in the log, and hidden from read_committed readers."""
    run = transactions(root)
    run.committed = [r for r in run.log if r.txn in (1, 3) and r.seq != 7]
    return run, {("torn", (message(1, 7),), (9,)), ("lost", (message(1, 7),), (9,))}


@case
def lost_as_a_whole_is_not_torn(root: Path) -> Case:
    run = transactions(root)
    run.committed = [r for r in run.log if r.txn == 1]
    run.log = [r for r in run.log if r.txn in (1, 2)]
    return run, {("lost", (message(1, n),), (n + 2,)) for n in (6, 7, 8)}


def two_lives(root: Path, *, late: bool) -> LiteralRun:
    """One transactional id, two producers; the first asks to commit before the second is ready, or after it."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    for number in (1, 2):
        run.session(number, transactional_id="one-id", idempotent=True)
    run.event("ready", "producer-1.0", session=1)
    run.write(1, 3, 0, txn=1)
    if not late:
        run.end(1, 1)
    run.event("ready", "producer-2.0", session=2)
    if late:
        run.end(1, 1)  # and its commit is acked
    run.write(2, 3, 0, txn=1)
    run.end(2, 1)
    return run


@case
def aborted_read_of_a_fenced_producer(root: Path) -> Case:
    """A zombie: whatever its client reports, a transaction committed after fencing must not be visible."""
    run = two_lives(root, late=True)
    run.committed = [r for r in run.log if r.session == 2]
    run.give(READER, *run.log)
    return run, {("aborted_read", (message(1, seq),), (seq,)) for seq in range(3)}


@case
def a_producer_that_was_fenced_when_it_was_done(root: Path) -> Case:
    return two_lives(root, late=False), set()
