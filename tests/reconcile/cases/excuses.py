"""Literal ledgers with records that were deleted, came after the drain, or are behind an open transaction: what excuses them."""

from __future__ import annotations

from pathlib import Path

from harness.contracts import Mode
from harness.ledger.literal_run import LiteralRun
from tests.reconcile.cases.base import READER, Case, case, message, observe, plain
from tests.reconcile.cases.evidence import doubted

# --- T5, T6: what was deleted is not lost ---


def killed_commit(root: Path, *, by: str) -> LiteralRun:
    """A transaction whose producer died while it committed: no record has an ack, all were read as committed."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    run.session(2)
    made = [run.append(run.send(1, 0, txn=1), ack=False) for _ in range(3)]
    run.end(1, 1, "commit", None)
    rest = run.write(2, 150, 0, txn=1)
    run.end(2, 1)
    run.give(READER, *(made if by == READER else []), *rest)
    if by != READER:
        observe(run, by, *made, *rest)
    run.committed = list(run.log)
    return run


def below(run: LiteralRun, start: int) -> LiteralRun:
    """Delete the records below this offset of partition 0."""
    end = run._next[0]
    run.log = [r for r in run.log if r.partition or r.offset >= start]
    run.committed = [r for r in run.committed or run.log if r.partition or r.offset >= start]
    run.bounds[0] = (start, end, end)
    return run


@doubted("")
def deleted_after_a_killed_commit_that_the_group_read(root: Path) -> Case:
    run = below(killed_commit(root, by=READER), 3)
    return run, {("expired", (message(1, n),), (n,)) for n in range(3)}


@doubted("")
def deleted_after_a_killed_commit_that_an_observer_read(root: Path) -> Case:
    run = killed_commit(root, by="observer-committed.0")
    run.drained_to[0] = 0
    return below(run, 3), {("expired", (message(1, n),), (n,)) for n in range(3)}


@doubted(
    "1 owed messages are missing whose position is not known, in partitions whose oldest records were deleted"
)
def deleted_or_lost_is_unknown(root: Path) -> Case:
    """Its position is in no ack and no delivery, and the start of the log has moved."""
    run = killed_commit(root, by=READER)
    run.deliveries = [(reader, r) for reader, r in run.deliveries or [] if (r.session, r.seq) != (1, 2)]
    run.drained_to[0] = 0
    run.commits = False
    return below(run, 3), {("expired", (message(1, n),), (n,)) for n in range(2)}


@case
def lost_without_a_position_where_nothing_was_deleted(root: Path) -> Case:
    run = killed_commit(root, by=READER)
    gone = next(r for r in run.log if (r.session, r.seq) == (1, 2))
    run.deliveries = [(reader, r) for reader, r in run.deliveries or [] if (r.session, r.seq) != (1, 2)]
    run.log.remove(gone)
    run.committed = list(run.log)
    return run, {("lost", (message(1, 2),), ()), ("torn", (message(1, 2),), ())}


@case
def delivered_above_the_new_start_and_lost(root: Path) -> Case:
    """Its position is known from a reader: nothing deleted it, so it is lost."""
    run = killed_commit(root, by=READER)
    run.sent[0].outcome = None
    gone = next(r for r in run.log if (r.session, r.seq) == (1, 2))
    run.log.remove(gone)
    run.committed = list(run.log)
    lost = {("lost", (message(1, 2),), ()), ("torn", (message(1, 2),), ())}
    return below(run, 1), {("expired", (message(1, 0),), (0,)), *lost}


@doubted("50 of 100 owed messages (50.0%) are excused as expired, more than 2%")
def deleted_while_it_was_read(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 100, 0)
    given = list(run.log)
    run.give(READER, *given)
    run.log = run.log[50:]
    run.bounds[0] = (0, 100, 100)
    run.bounds_after[0] = (50, 100, 100)
    return run, {("expired", (message(1, n),), (n,)) for n in range(50)}


# --- T7: what came after the drain was not drained ---


@doubted("")
def appended_after_the_drain(root: Path) -> Case:
    run = plain(root)
    last = run.log[9]
    assert (last.partition, last.offset) == (0, 9)
    run.give(READER, *(r for r in run.log if r is not last))
    run.drained_to[0] = 9
    return run, set()


@case
def drained_up_to_it_and_never_given(root: Path) -> Case:
    run = plain(root)
    last = run.log[9]
    run.give(READER, *(r for r in run.log if r is not last))
    return run, {("undelivered", (message(1, 9),), (9,))}


# --- T12: an excuse does not carry the verdict ---


@doubted("200 of 204 owed messages (98.0%) are excused as late, more than 2%")
def behind_a_hanging_transaction(root: Path) -> Case:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    run.write(1, 4, 0, txn=1)
    run.end(1, 1)
    late = run.write(1, 200, 0, txn=2)
    run.end(1, 2)
    run.committed = run.log[:4]
    run.bounds[0] = (0, 204, 4)
    run.drained_to[0] = 4
    return run, {("late", (message(1, r.seq),), (r.offset,)) for r in late}


@doubted("")
def a_few_that_expired(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 100, 0)
    given = list(run.log)
    run.give(READER, *given)
    run.log = run.log[2:]
    run.bounds[0] = (2, 100, 100)
    return run, {("expired", (message(1, n),), (n,)) for n in range(2)}


# --- the harness was killed before it wrote its last manifest ---


@case
def keys_may_move_when_the_final_reader_found_more_partitions(root: Path) -> Case:
    """No event says that partitions were added, but the final reader had more to read than the topic began with."""
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 3, 0, key=7, chosen=True)
    run.write(1, 3, run.partitions, key=7, chosen=True)
    return run, set()
