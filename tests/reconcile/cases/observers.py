"""Ledgers of observers, which read beside the group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.contracts import Mode
from harness.ledger.literal_history import Record
from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import BAD_KEY
from harness.ledger.transform import OUTPUT
from tests.reconcile.cases.base import (
    LAX,
    READER,
    STRICT,
    Case,
    case,
    in_partition,
    message,
    observe,
    pipeline,
    plain,
    transactions,
)
from tests.reconcile.cases.deliveries import read


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
