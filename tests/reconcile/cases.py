"""Literal ledgers: a history by hand, and exactly what has to be found in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.contracts import Mode, Outcome
from harness.ledger.literal_run import LiteralRun, Record
from harness.ledger.message import BAD_KEY, BAD_PAYLOAD, FOREIGN_RUN
from harness.ledger.transform import DEAD_LETTERS, OUTPUT, Transform
from tests.reconcile.together import Finding

READER, OTHER = "consumer-1.0", "consumer-2.0"
STRICT, LAX = "observer-committed.0", "observer-uncommitted.0"

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


@case
def undelivered(root: Path) -> Case:
    run = plain(root)
    run.deliveries = [("consumer-1.0", r) for r in run.log if r.offset != 6]
    return run, {("undelivered", (message(s, 6),), (6,)) for s in (1, 2)} | {
        ("skipped", tuple(message(s, n) for n in (5, 7, 6)), (5, 7, 6)) for s in (1, 2)
    }


@case
def undelivered_below_the_commit_only(root: Path) -> Case:
    """Not drained: what lies above the committed offset may still come."""
    run = plain(root)
    run.drained = False
    run.deliveries = [("consumer-1.0", r) for r in run.log if r.offset < 8 and r.offset != 5]
    return run, {("undelivered", (message(s, 5),), (5,)) for s in (1, 2)} | {
        ("skipped", tuple(message(s, n) for n in (4, 6, 5)), (4, 6, 5)) for s in (1, 2)
    }


@case
def undelivered_copy(root: Path) -> Case:
    """One of two copies of a message was never delivered."""
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
    return run, {
        ("aborted_read", (message(1, 3),), (4,)),
        ("undelivered", (message(1, 3),), (4,)),
        ("skipped", tuple(message(1, n) for n in (2, 6, 3)), (2, 8, 4)),
    }


@case
def aborted_read_by_choice(root: Path) -> Case:
    run = transactions(root, isolation="read_uncommitted")
    return run, {("aborted_read", (message(1, n),), (n + 1,)) for n in (3, 4, 5)}


# --- what readers were given, step by step ---------------------------------------------------------


def read(root: Path, *offsets: int, apart: bool = True) -> LiteralRun:
    """Ten records in partition 0, of which one reader gets these offsets, in this order."""
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 10, 0)
    run.assign(READER, 0, 1, 2)
    run.give(READER, *(run.log[offset] for offset in offsets), apart=apart)
    return run


@case
def skipped_between_polls(root: Path) -> Case:
    """A second reader got what the first one left out: nothing is undelivered, but the jump is still a jump."""
    run = read(root, 0, 1, 4, 5, 6, 7, 8, 9)
    run.assign(OTHER, 0)
    run.give(OTHER, run.log[2], run.log[3])
    return run, {("skipped", tuple(message(1, n) for n in (1, 4, 2, 3)), (1, 4, 2, 3))}


@case
def skipped_within_a_poll(root: Path) -> Case:
    run = read(root, *(n for n in range(10) if n != 3), apart=False)
    return run, {
        ("skipped", tuple(message(1, n) for n in (2, 4, 3)), (2, 4, 3)),
        ("undelivered", (message(1, 3),), (3,)),
    }


@case
def skipped_over_several_blocks(root: Path) -> Case:
    """The first record left out is far from both ends of the jump."""
    run = LiteralRun(root)
    run.session(1)
    for gap in (0, 0, 300, 500, 0):
        run.append(run.send(1, 0), gap=gap)
    run.give(READER, run.log[0], run.log[1], run.log[3], run.log[4])
    return run, {
        ("skipped", tuple(message(1, n) for n in (1, 3, 2)), (1, 803, 302)),
        ("undelivered", (message(1, 2),), (302,)),
    }


@case
def skipped_nothing_that_can_be_read(root: Path) -> Case:
    """Markers and aborted records are jumped over by every read_committed reader."""
    return transactions(root), set()


@case
def jump_after_a_rebalance(root: Path) -> Case:
    """Another member had it meanwhile: E7."""
    run = read(root, 0, 1)
    run.assign(READER, 0, how="revoked")
    run.assign(OTHER, 0)
    run.give(OTHER, *run.log[2:6])
    run.assign(READER, 0)
    run.give(READER, *run.log[6:])
    return run, set()


@case
def late_joiner(root: Path) -> Case:
    """A reader that begins in the middle has jumped over nothing."""
    run = read(root, *range(5))
    run.assign(OTHER, 0)
    run.give(OTHER, *run.log[5:])
    return run, set()


@case
def rewound_between_polls(root: Path) -> Case:
    run = read(root, 0, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    return run, {
        ("rewound", (message(1, 2), message(1, 1)), (2, 1)),
        *((("redelivered", (message(1, n),), (n,))) for n in (1, 2)),
    }


@case
def rewound_within_a_poll(root: Path) -> Case:
    run = read(root, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, apart=False)
    return run, {
        ("rewound", (message(1, 1), message(1, 1)), (1, 1)),
        ("redelivered", (message(1, 1),), (1,)),
    }


@case
def rewound_after_a_rebalance(root: Path) -> Case:
    """It resumes from what was committed: excused, and counted."""
    run = read(root, 0, 1, 2, 3)
    run.commit(READER, {0: 2})
    run.assign(READER, 0, how="lost")
    run.assign(READER, 0)
    run.give(READER, *run.log[2:])
    return run, {
        ("rewound", (message(1, 3), message(1, 2)), (3, 2)),
        *((("redelivered", (message(1, n),), (n,))) for n in (2, 3)),
    }


@case
def overcommitted(root: Path) -> Case:
    run = read(root, 0, 1)
    run.commit(READER, {0: 5})
    run.give(READER, *run.log[2:])
    return run, {("overcommitted", tuple(message(1, n) for n in (2, 3, 4)), (5, 2))}


@case
def overcommitted_before_the_first_record(root: Path) -> Case:
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 10, 0)
    run.assign(READER, 0)
    run.commit(READER, {0: 1})
    run.give(READER, *run.log)
    return run, {("overcommitted", (message(1, 0),), (1, 0))}


@case
def commits_that_are_fine(root: Path) -> Case:
    """Only markers are behind the delivered records; a commit that failed commits nothing; another member was given it."""
    run = transactions(root)
    run.append(run.send(1, 0, txn=4), gap=1)
    run.end(1, 4)
    committed = [r for r in run.log if r.txn in (1, 3, 4)]
    run.assign(READER, 0)
    run.give(READER, *committed[:3])
    run.commit(READER, {0: 8})
    run.commit(READER, {0: 12}, Outcome.UNKNOWN)
    run.assign(OTHER, 0)
    run.give(OTHER, *committed[3:])
    run.commit(READER, {0: 13})
    return run, set()


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


def pipeline(root: Path, aborted_first: bool = False) -> tuple[LiteralRun, list[list[Record]]]:
    """Twelve inputs of which session 7 makes effects in one transaction; with what it made of each."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, transform=Transform(most=2, poison_share=0.2))
    run.session(1)
    run.session(7, "copier-1", idempotent=True, transactional_id="copier")
    inputs = run.write(1, 12, 0)
    if aborted_first:
        for record in inputs:
            run.copy(7, record, txn=1)
        run.end(7, 1, "abort")
    made = [run.copy(7, record, txn=2) for record in inputs]
    run.end(7, 2)
    counts = {len(effects) for effects in made}
    assert counts == {0, 1, 2}, "the case needs inputs of every kind"
    assert {one.topic for effects in made for one in effects} == {OUTPUT, DEAD_LETTERS}
    return run, made


@case
def consistent_pipeline(root: Path) -> Case:
    """Effects of an aborted transaction are made again, and are in the promised log once."""
    return pipeline(root, aborted_first=True)[0], set()


@case
def double_effect(root: Path) -> Case:
    """A zombie worked on one input again, and its transaction was committed."""
    run, made = pipeline(root)
    number = next(number for number, effects in enumerate(made) if len(effects) == 2)
    again = run.copy(7, run.log[number], txn=3)
    run.end(7, 3)
    planted: set[Finding] = {
        (
            "double_effect",
            (message(1, number), f"copier-1.0-{first.seq}", f"copier-1.0-{second.seq}"),
            (first.offset, second.offset),
        )
        for first, second in zip(made[number], again, strict=True)
    }
    return run, planted


@case
def missing_effect(root: Path) -> Case:
    """A transaction with the offsets was committed, and one input had no effect: never sent, so nothing is lost."""
    run, _ = pipeline(root)
    assert run.transform is not None
    more = run.write(1, 8, 0)
    owed = run.transform.effects(np.full(8, 1), np.array([one.seq for one in more]))
    left_out = [one for one, effects in zip(more, owed, strict=True) if effects > 0]
    assert len(left_out) < len(more), "the case needs an input that has no effect"
    return run, {("missing_effect", (message(1, one.seq),), (one.offset,)) for one in left_out}


@case
def missing_effect_of_the_second_only(root: Path) -> Case:
    """One of two effects is missing."""
    run, made = pipeline(root)
    number = next(number for number, effects in enumerate(made) if len(effects) == 2)
    second = made[number][1]
    at = (second.topic, second.partition, second.offset)
    del run.origins[at]  # another record is there, which was made of no input
    return run, {("missing_effect", (message(1, number),), (run.log[number].offset,))}


@case
def inputs_that_were_not_passed_owe_nothing(root: Path) -> Case:
    run, _ = pipeline(root)
    given = list(run.log[:12])
    run.write(1, 5, 0)
    run.drained = False
    run.give("copier-1.0", *given)
    return run, set()


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


@case
def effects_behind_an_open_transaction_are_late(root: Path) -> Case:
    """Nothing is missing: what is held back will be seen when the transaction before it ends."""
    run, _ = pipeline(root)
    output = [r for r in run.log if r.topic == OUTPUT]
    stable, end = output[3].offset, output[-1].offset + 1
    run.bounds[OUTPUT << 32] = (0, end, stable)
    held_back = [r for r in output if r.offset >= stable]
    run.committed = [r for r in run.log if r not in held_back]
    return run, {("late", (f"copier-1.0-{r.seq}",), (r.offset,)) for r in held_back}


# --- observers ------------------------------------------------------------------------------------


def observe(run: LiteralRun, reader: str, *records: Record) -> None:
    run.observe(reader, "read_committed" if reader == STRICT else "read_uncommitted", *records)


def in_partition(run: LiteralRun, partition: int) -> list[Record]:
    return [r for r in run.log if r.partition == partition]


@case
def observed(root: Path) -> Case:
    """Observers repeat what the group gets, and one of them sees aborted records: nothing is wrong with that."""
    run = transactions(root)
    observe(run, STRICT, *(r for r in run.log if r.txn != 2))
    observe(run, LAX, *run.log)
    return run, set()


@case
def observed_pipeline(root: Path) -> Case:
    """They read the output, too."""
    run, _ = pipeline(root, aborted_first=True)
    observe(run, STRICT, *(r for r in run.log if r.txn != 1))
    observe(run, LAX, *run.log)
    return run, set()


@case
def observed_in_part(root: Path) -> Case:
    """One came late, the other one went early, and its second life began again."""
    run = plain(root)
    observe(run, STRICT, *run.log[3:10], *run.log[12:])
    observe(run, LAX, *run.log[:5])
    run.observe("observer-uncommitted.1", "read_uncommitted", *run.log)
    return run, set()


@case
def observed_aborted_read(root: Path) -> Case:
    """The final reader was shown nothing of it any more, and the group neither."""
    run = transactions(root)
    observe(run, STRICT, *(r for r in run.log if r.txn != 2 or r.offset == 5))
    return run, {("aborted_read", (message(1, 4),), (5,))}


@case
def observed_premature_read(root: Path) -> Case:
    """Both saw it before its sender asked to commit it; one of them may."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    made = [run.append(run.send(1, 0, txn=1)) for _ in range(3)]
    observe(run, LAX, *made)
    observe(run, STRICT, made[0])
    run.end(1, 1)
    observe(run, STRICT, made[1], made[2])
    return run, {("premature_read", (message(1, 0),), (0,))}


@case
def observed_before_the_log_was_cut_back(root: Path) -> Case:
    """The last record of an observer was truncated, unacked, and another message took its place."""
    run = plain(root)
    gone = run.send(1, 0)
    observe(run, LAX, *in_partition(run, 0), gone.at(0, 10))
    run.append(run.send(1, 0))
    return run, {("offset_conflict", (message(1, 10), message(1, 11)), (10,))}


@case
def observed_before_it_was_lost(root: Path) -> Case:
    """The end of its transaction is unknown, but an observer of read_committed got a record of it (E2)."""
    run = transactions(root)
    run.append(run.send(1, 0, txn=4), gap=1)
    run.end(1, 4, outcome=None)
    observe(run, STRICT, *(r for r in run.log if r.txn != 2))
    run.log.pop()
    return run, {("lost", (message(1, 9),), (12,))}


@case
def observed_proves_nothing_uncommitted(root: Path) -> Case:
    """The same, seen by an observer of read_uncommitted alone: it may have been aborted."""
    run = transactions(root)
    run.append(run.send(1, 0, txn=4), gap=1)
    run.end(1, 4, outcome=None)
    observe(run, LAX, *run.log)
    run.log.pop()
    return run, set()


@case
def skipped_by_an_observer(root: Path) -> Case:
    run = plain(root)
    observe(run, STRICT, *(r for r in run.log if r.offset not in (3, 4) or r.partition == 1))
    return run, {("skipped", tuple(message(1, n) for n in (2, 5, 3, 4)), (2, 5, 3, 4))}


@case
def skipped_in_the_output(root: Path) -> Case:
    """An observer skips a record of a topic that the group does not read."""
    run, _ = pipeline(root)
    output = [r for r in run.log if r.topic == OUTPUT]
    observe(run, LAX, *output[:2], *output[3:])
    ids = tuple(f"copier-1.0-{output[n].seq}" for n in (1, 3, 2))
    return run, {("skipped", ids, tuple(output[n].offset for n in (1, 3, 2)))}


@case
def rewound_by_an_observer(root: Path) -> Case:
    run = plain(root)
    observe(run, LAX, *run.log[:5], *run.log[3:10])
    return run, {("rewound", (message(1, 4), message(1, 3)), (4, 3))}


@case
def undelivered_but_observed(root: Path) -> Case:
    """Deliveries to observers are not deliveries to the group."""
    run = read(root, *(n for n in range(10) if n != 9))
    observe(run, STRICT, *run.log)
    return run, {("undelivered", (message(1, 9),), (9,))}


@case
def overcommitted_but_observed(root: Path) -> Case:
    run = read(root, 0, 1)
    observe(run, STRICT, *run.log)
    run.commit(READER, {0: 5})
    run.give(READER, *run.log[2:])
    return run, {("overcommitted", tuple(message(1, n) for n in (2, 3, 4)), (5, 2))}


@case
def order_of_keys_as_observed(root: Path) -> Case:
    """Across partitions it is what the group was given first that counts."""
    run = LiteralRun(root)
    run.manifest["topic_unchanged"] = False
    run.session(1)
    old, new = run.write(1, 2, 0, key=3, chosen=True), run.write(1, 2, 1, key=3, chosen=True)
    observe(run, STRICT, *new, *old)
    run.give(READER, *old, *new)
    return run, set()


@case
def phantom_for_an_observer(root: Path) -> Case:
    run = plain(root)
    observe(run, LAX, *in_partition(run, 0), Record(1, 99, 0, 10))
    return run, {("phantom", (message(1, 99),), ())}


@case
def corrupted_for_an_observer(root: Path) -> Case:
    """One record with a broken key, and one whose payload is intact and says another key than was sent."""
    run = plain(root)
    log = in_partition(run, 0)
    log[2] = replace(log[2], flags=BAD_KEY)
    log[5] = replace(log[5], key=7)
    observe(run, STRICT, *log)
    return run, {("corrupted", (message(1, n),), (n,)) for n in (2, 5)}


# More of them: what incomplete evidence must not be found as, and owners of partitions.
from tests.reconcile import evidence_cases, owner_cases  # noqa: E402, F401
