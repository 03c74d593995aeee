"""Literal ledgers whose evidence is not whole, each with the expected findings and doubts.

DOUBTS has what the judge has to say about each: a part of one line, or nothing where the evidence is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.contracts import Mode, Outcome
from harness.ledger.literal_history import Record, Sent
from harness.ledger.literal_run import LiteralRun
from harness.ledger.transform import OUTPUT
from tests.reconcile.cases.base import READER, Case, case, message, pipeline, plain, transactions

UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"
DOUBTS: dict[str, str] = {}
Make = Callable[[Path], Case]


def doubted(text: str) -> Callable[[Make], Make]:
    def note(make: Make) -> Make:
        DOUBTS[make.__name__] = text
        return case(make)

    return note


# --- T1: what was not read is not missing ---


@doubted("lost was not asked of orders/0: the final read_uncommitted reading stopped at 4 of 10")
def a_reading_that_stopped_half_way(root: Path) -> Case:
    run = plain(root)
    run.stopped_at[UNCOMMITTED, 0] = 4
    return run, set()


@doubted("lost was not asked of orders/0: the final read_uncommitted reading stopped at 4 of 10")
def a_loss_in_a_partition_that_was_read_stays_evidence(root: Path) -> Case:
    run = plain(root)
    run.stopped_at[UNCOMMITTED, 0] = 4
    gone = next(r for r in run.log if r.partition == 1 and r.seq == 6)
    run.log.remove(gone)
    return run, {("lost", (message(2, 6),), (6,))}


@doubted(
    "lost was not asked of orders/0: the ledger does not have the end of its final read_uncommitted reading"
)
def a_reader_that_was_killed(root: Path) -> Case:
    """Its rows end somewhere and no event says where."""
    run = plain(root)
    run.stopped_at[UNCOMMITTED, 0] = 7
    run.unfinished = {(UNCOMMITTED, 0), *((COMMITTED, place) for place in range(3))}
    run.reads = {}
    return run, set()


@doubted(
    "lost, undelivered were not asked of orders, orders-output, orders-dead-letters: the final reading did not begin"
)
def a_run_that_was_stopped_before_the_reading(root: Path) -> Case:
    run = plain(root)
    run.final_reading = False
    run.give(READER, *run.log[:3])
    return run, set()


@doubted(
    "lost, torn, undelivered were not asked of orders/0: the final read_committed reading stopped at 5 of 11"
)
def a_committed_reading_that_stopped(root: Path) -> Case:
    """The log that is owed is the committed one; that the other one is whole does not help."""
    run = transactions(root)
    run.stopped_at[COMMITTED, 0] = 5
    return run, set()


@doubted("lost, torn were not asked of orders/0: the final read_uncommitted reading stopped at 12 of 13")
def late_and_lost_look_alike_without_the_uncommitted_reading(root: Path) -> Case:
    run = transactions(root)
    run.append(run.send(1, 0, txn=4), gap=1)
    run.end(1, 4)
    run.committed = [r for r in run.log if r.txn in (1, 3)]
    run.bounds[0] = (0, 13, 12)
    run.stopped_at[UNCOMMITTED, 0] = 12
    return run, set()


def across(root: Path) -> tuple[LiteralRun, list[Record]]:
    """One transaction in three partitions, and another one in two."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    made = [run.append(run.send(1, n % 3, txn=1)) for n in range(6)]
    run.end(1, 1)
    made += [run.append(run.send(1, n % 2, txn=2)) for n in range(4)]
    run.end(1, 2)
    return run, made


@doubted(
    "lost, torn, undelivered were not asked of orders/2: the final read_committed reading stopped at 0 of 2"
)
def a_transaction_is_not_torn_by_a_partition_that_was_not_read(root: Path) -> Case:
    run, _ = across(root)
    run.stopped_at[COMMITTED, 2] = 0
    return run, set()


@doubted(
    "lost, torn, undelivered were not asked of orders/2: the final read_committed reading stopped at 0 of 2"
)
def torn_where_it_was_read_although_another_partition_was_not(root: Path) -> Case:
    run, made = across(root)
    run.committed = [r for r in made if r is not made[1]]
    run.stopped_at[COMMITTED, 2] = 0
    return run, {("lost", (message(1, 1),), (0,)), ("torn", (message(1, 1),), (0,))}


def without_partitions(root: Path) -> tuple[LiteralRun, Sent]:
    """acks=0, keyed: the client does not report the partition, and one message is gone."""
    run = LiteralRun(root, mode=Mode.AT_MOST_ONCE)
    run.session(1, acks="0")
    run.write(1, 6, 0, key=3, chosen=True)
    gone = run.send(1, 0, key=3, chosen=True)
    gone.outcome = Outcome.ACKED
    return run, gone


@case
def lost_in_an_unknown_partition(root: Path) -> Case:
    run, gone = without_partitions(root)
    return run, {("lost", (message(1, gone.seq),), ())}


@doubted("lost was not asked of orders/2: the final read_uncommitted reading stopped at 0 of 1")
def an_unknown_partition_needs_all_of_them(root: Path) -> Case:
    run, _ = without_partitions(root)
    run.session(2)
    run.write(2, 1, 2)
    run.stopped_at[UNCOMMITTED, 2] = 0
    return run, set()


@doubted("undelivered was not asked of orders/0: the final read_committed reading stopped at 8 of 10")
def undelivered_is_not_asked_of_what_was_not_read(root: Path) -> Case:
    run = plain(root)
    run.give(READER, *(r for r in run.log if (r.partition, r.offset) not in ((0, 3), (1, 3))))
    run.assign(READER, 0, 1, 2)
    run.stopped_at[COMMITTED, 0] = 8
    jumped = {
        (message(2, 2), message(2, 4), message(2, 3)): (2, 4, 3),
        (message(1, 2), message(1, 4), message(1, 3)): (2, 4, 3),
    }
    skipped = {("skipped", messages, offsets) for messages, offsets in jumped.items()}
    return run, {("undelivered", (message(2, 3),), (3,)), *skipped}


@doubted("missing_effect were not asked of orders-output/0: the final read_committed reading stopped at 3 of")
def effects_are_not_missing_where_the_output_was_not_read(root: Path) -> Case:
    run, _ = pipeline(root)
    run.stopped_at[COMMITTED, OUTPUT << 32] = 3
    return run, set()


@doubted(
    "missing_effect was not asked of orders-output/0: its log starts at 3: effects may have been deleted"
)
def effects_are_not_missing_where_the_output_was_deleted(root: Path) -> Case:
    run, _ = pipeline(root)
    gone = [r for r in run.log if r.topic == OUTPUT and r.offset < 3]
    end = max(r.offset for r in run.log if r.topic == OUTPUT) + 1
    run.log = [r for r in run.log if r not in gone]
    run.bounds[OUTPUT << 32] = (3, end, end)
    names = run._sessions
    owed = [r for r in gone if run._fates.get((r.session, r.txn)) == "committed"]
    return run, {("expired", (f"{names[r.session]}-{r.seq}",), (r.offset,)) for r in owed}
