"""Literal ledgers: a history by hand, and exactly what has to be found in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.contracts import Mode, Outcome
from harness.message import BAD_KEY, BAD_PAYLOAD, FOREIGN_RUN
from harness.testing.ledgers import LiteralRun

from .together import Finding

Case = tuple[LiteralRun, set[Finding]]
CASES: dict[str, Callable[[Path], Case]] = {}


def case(make: Callable[[Path], Case]) -> Callable[[Path], Case]:
    CASES[make.__name__] = make
    return make


def plain(root: Path, mode: Mode = Mode.AT_LEAST_ONCE, isolation: str = "read_committed") -> LiteralRun:
    """Two sessions, ten messages each, to partitions 0 and 1: consistent."""
    run = LiteralRun(root, mode=mode, isolation=isolation)
    run.session(1)
    run.session(2)
    run.write(1, 10, 0)
    run.write(2, 10, 1)
    return run


def transactions(root: Path, isolation: str = "read_committed") -> LiteralRun:
    """One session: transaction 1 committed (offsets 0-2), 2 aborted (4-6), 3 committed (8-10); markers between."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, isolation=isolation)
    run.session(1)
    for txn, did in ((1, "commit"), (2, "abort"), (3, "commit")):
        made = [run.send(1, 0, txn=txn) for _ in range(3)]
        for number, one in enumerate(made):
            run.append(one, gap=1 if txn > 1 and number == 0 else 0)
        run.end(1, txn, did)
    return run


def message(session: int, seq: int) -> str:
    return f"producer-{session}.0-{seq}"


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
    """Never ended, so it cannot have been committed; its records stand only in the read_uncommitted log."""
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
    """With acks=0 an offset that the client tells is made up, and claims nothing."""
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
    return run, {("lost", (message(1, 10),), (12,))}


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
    """An unknown send that was retried: the second copy stands behind later ones."""
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
    return run, {("reordered", (message(1, 2), message(1, 1)), (1, 2))}


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
    run.log.insert(2, replace(run.log[2], seq=900, offset=50))
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


@case
def corrupted(root: Path) -> Case:
    """It cannot say who it is; the ack of its position does. It is damaged, not lost and not a phantom."""
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
        ("reordered", (message(1, 10), message(1, 8)), (7, 8)),
        ("reordered", (message(1, 10), message(1, 9)), (7, 9)),
    }


@case
def offset_conflict_between_readings(root: Path) -> Case:
    run = plain(root)
    run.committed = list(run.log)
    other = run.send(1, 0)
    run.committed[7] = replace(run.log[7], seq=other.seq)
    return run, {
        ("offset_conflict", (message(1, 10), message(1, 7)), (7,)),
        ("reordered", (message(1, 10), message(1, 8)), (7, 8)),
        ("reordered", (message(1, 10), message(1, 9)), (7, 9)),
    }


@case
def undelivered(root: Path) -> Case:
    run = plain(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log if r.offset != 6]
    return run, {("undelivered", (message(1, 6),), (6,)), ("undelivered", (message(2, 6),), (6,))}


@case
def undelivered_below_the_commit_only(root: Path) -> Case:
    """Not drained: what lies above the committed offset may still come."""
    run = plain(root)
    run.drained = False
    run.deliveries = [("consumer-1.0", r) for r in run.log if r.offset < 8 and r.offset != 5]
    return run, {("undelivered", (message(1, 5),), (5,)), ("undelivered", (message(2, 5),), (5,))}


@case
def undelivered_copy(root: Path) -> Case:
    """Of two copies of a message one was never delivered."""
    run, found = duplicated(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log[:-1]]
    return run, found | {("undelivered", (message(1, 4),), (10,))}


@case
def aborted_is_not_undelivered(root: Path) -> Case:
    run = transactions(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log if r.txn in (1, 3)]
    return run, set()


@case
def redelivered(root: Path) -> Case:
    run = plain(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log] + [("consumer-2.0", run.log[8])]
    return run, {("redelivered", (message(1, 8),), (8,))}


@case
def copies_are_not_redelivered(root: Path) -> Case:
    """Two positions, each delivered once: duplicated by the log, not by the group."""
    run, found = duplicated(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log]
    return run, found


@case
def aborted_read(root: Path) -> Case:
    run = transactions(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log]
    return run, {("aborted_read", (message(1, n),), (n + 1,)) for n in (3, 4, 5)}


@case
def aborted_read_by_the_final_reader(root: Path) -> Case:
    run = transactions(root)
    run.committed = [r for r in run.log if r.seq != 4 and r.seq != 5]
    run.deliveries = [("consumer-1.0", r) for r in run.log if r.txn in (1, 3)]
    return run, {("aborted_read", (message(1, 3),), (4,)), ("undelivered", (message(1, 3),), (4,))}


@case
def aborted_read_by_choice(root: Path) -> Case:
    run = transactions(root, isolation="read_uncommitted")
    return run, {("aborted_read", (message(1, n),), (n + 1,)) for n in (3, 4, 5)}
