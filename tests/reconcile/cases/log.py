"""Records that the log has, lacks, or has twice or in another order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.contracts import Mode, Outcome
from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import FOREIGN_RUN
from tests.reconcile.cases.base import Case, case, message, plain, transactions


@case
def consistent(root: Path) -> Case:
    return plain(root), set()


@case
def consistent_transactions(root: Path) -> Case:
    return transactions(root), set()


@case
def crashed_producer(root: Path) -> Case:
    """Its last attempts have no outcome: one is in the log, one is not, and both are fine (E1)."""
    run = plain(root)
    run.append(run.send(1, 0), ack=False)
    run.send(1, 0)
    return run, set()


@case
def crashed_transaction(root: Path) -> Case:
    """Never ended, so it cannot have been committed; its records are only in the read_uncommitted log."""
    run = transactions(root)
    run.append(run.send(1, 0, txn=4))
    run.end(1, 4, None)
    return run, set()


@case
def rejected_in_no_place(root: Path) -> Case:
    run = plain(root)
    run.send(1, 0).outcome = Outcome.REJECTED
    return run, set()


@case
def markers_and_high_offsets(root: Path) -> Case:
    """Offsets far up with gaps: rank counts, never offset + 1 (E4)."""
    run = LiteralRun(root)
    run.session(1)
    for gap in (1 << 40, 1, 7, 0):
        run.append(run.send(1, 0), gap=gap)
    run.bounds[0] = (1 << 40, (1 << 40) + 20, (1 << 40) + 20)
    return run, set()


@case
def lost(root: Path) -> Case:
    run = plain(root)
    gone = run.log.pop(3)
    return run, {("lost", (message(1, gone.seq),), (gone.offset,))}


@case
def lost_behind_the_end(root: Path) -> Case:
    """The log was cut back by a failover: the acked offset lies beyond its end. That is lost, not late."""
    run = plain(root)
    gone = run.log.pop(9)
    assert (gone.session, gone.offset) == (1, 9)
    run.bounds[0] = (0, 9, 9)
    return run, {("lost", (message(1, 9),), (9,))}


@case
def lost_without_position(root: Path) -> Case:
    """The client makes up the offset that it reports with acks=0; it claims no position."""
    run = LiteralRun(root, mode=Mode.AT_MOST_ONCE)
    run.session(1, acks="0")
    for one in run.write(1, 5, 0):
        run.sent[one.seq].offset = 0
    del run.log[2]
    return run, {("lost", (message(1, 2),), ())}


@case
def expired(root: Path) -> Case:
    run = plain(root)
    del run.log[:2]
    run.bounds[0] = (2, 10, 10)
    return run, {("expired", (message(1, n),), (n,)) for n in (0, 1)}


@case
def late(root: Path) -> Case:
    """Behind a transaction that is still open, a committed one cannot be seen yet."""
    run = transactions(root)
    run.append(run.send(1, 0, txn=4), gap=1)
    run.end(1, 4)
    run.committed = [r for r in run.log if r.txn in (1, 3)]
    run.bounds[0] = (0, 13, 12)
    return run, {("late", (message(1, 9),), (12,))}


@case
def lost_from_a_proven_transaction(root: Path) -> Case:
    """E2: its end is unknown, one of its records was read by read_committed: all of them are owed."""
    run = transactions(root)
    for _ in range(2):
        run.append(run.send(1, 0, txn=4))
    run.end(1, 4, "commit", None)
    run.committed = [r for r in run.log if r.txn in (1, 3) or r.seq == 9]
    return run, {("lost", (message(1, 10),), (12,)), ("torn", (message(1, 10),), (12,))}


@case
def unproven_transaction(root: Path) -> Case:
    """Unknown and never seen: nothing is owed."""
    run = transactions(root)
    run.append(run.send(1, 0, txn=4))
    run.end(1, 4, "commit", None)
    return run, set()


@case
def duplicated(root: Path) -> Case:
    run = plain(root)
    copy = replace(run.log[4], offset=10)
    run.log.append(copy)
    return run, {("duplicated", (message(1, 4),), (4, 10))}


@case
def duplicated_is_not_reordered(root: Path) -> Case:
    """An unknown send that was retried: the second copy is behind later ones."""
    run = LiteralRun(root)
    run.session(1)
    first = run.send(1, 0)
    run.append(first, ack=False)
    run.write(1, 3, 0)
    run.append(first)
    return run, {("duplicated", (message(1, 0),), (0, 4))}


@case
def reordered(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    sent = [run.send(1, 0) for _ in range(4)]
    for number in (0, 2, 1, 3):
        run.append(sent[number])
    return run, {("reordered", (message(1, 1), message(1, 2)), (2, 1))}


@case
def order_of_two_sessions_is_free(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    run.session(2)
    early, other = run.send(1, 0), run.send(2, 0)
    run.append(other)
    run.append(early)
    return run, set()


@case
def phantom(root: Path) -> Case:
    """Its high number must not make everything after it look reordered."""
    run = plain(root)
    run.log.insert(10, replace(run.log[2], seq=900, offset=50))
    run.append(run.send(1, 0), gap=60)
    run.deliveries = [("consumer-1.0", r) for r in run.log]
    return run, {("phantom", (message(1, 900),), (50,))}


@case
def phantom_of_another_run(root: Path) -> Case:
    run = plain(root)
    run.log.append(replace(run.log[0], offset=10, flags=FOREIGN_RUN))
    return run, {("phantom", (), (10,))}


@case
def phantom_delivered_only(root: Path) -> Case:
    run = plain(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log]
    run.deliveries.append(("consumer-1.0", replace(run.log[0], session=77, offset=60)))
    return run, {("phantom", ("session 77-0",), ())}
