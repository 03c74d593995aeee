"""Records as readers got them: step by step, with what they committed."""

from __future__ import annotations

from pathlib import Path

from harness.contracts import Outcome
from harness.ledger.literal_run import LiteralRun
from tests.reconcile.cases.base import OTHER, READER, Case, case, message, plain, transactions
from tests.reconcile.cases.log import duplicated


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
