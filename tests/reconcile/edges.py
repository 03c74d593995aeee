"""Runs at the edges of conditions: times that are just long enough, steps from and to damaged records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.contracts import Mode
from harness.ledger.literal_history import Record
from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from tests.reconcile.cases.base import OTHER, READER

MS = 1_000_000
EDGES: dict[str, Callable[[Path], LiteralRun]] = {}


def edge(make: Callable[[Path], LiteralRun]) -> Callable[[Path], LiteralRun]:
    """A run at the edge of a rule: what has to be found is what the oracle says."""
    EDGES[make.__name__] = make
    return make


def ten(root: Path, mode: Mode = Mode.AT_LEAST_ONCE) -> LiteralRun:
    """Ten records in partition 0, and a reader of it."""
    run = LiteralRun(root, mode=mode)
    run.session(1)
    run.session(2)
    run.write(1, 10, 0)
    run.assign(READER, 0, 1, 2)
    return run


def spread(run: LiteralRun, *distances_ms: float) -> LiteralRun:
    """A key for each distance: acked to one producer, and so much later sent by another one, which is before it in the log."""
    for key, distance in enumerate(distances_ms):
        first = run.send(1, 0, key=key, chosen=True)
        behind = run._next.get(0, 0) + 1
        run.ack(first, 0, behind)
        run.clock = first.t_outcome + int(distance * MS) - MS  # the send takes the next tick
        run.append(run.send(2, 0, key=key, chosen=True), 0)
        run.log.append(first.at(0, behind))
        run._next[0] = behind + 1
        run.tick(1)
    return run


@edge
def acks_at_many_distances(root: Path) -> LiteralRun:
    run = LiteralRun(root)
    run.session(1)
    run.session(2)
    return spread(run, 1, 99, 150, 199.999, 200, 200.001, 210, 250, 299, 300, 301, 1000)


@edge
def one_ack_just_long_enough_ago(root: Path) -> LiteralRun:
    run = LiteralRun(root)
    run.session(1)
    run.session(2)
    return spread(run, 200)


@edge
def given_at_the_time_of_the_commit(root: Path) -> LiteralRun:
    run = ten(root)
    run.commits = False
    run.give(READER, *run.log[:5], apart=False)
    run.clock -= MS  # the event takes the next tick: the same time
    run.commit(READER, {0: 5})
    run.give(READER, *run.log[5:])
    return run


@edge
def read_at_the_time_of_the_end(root: Path) -> LiteralRun:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    record = run.append(run.send(1, 0, txn=1))
    run.give(READER, record)
    run.clock -= 2 * MS  # of the begin and of the end
    run.end(1, 1)
    return run


@edge
def assigned_at_the_time_of_a_poll(root: Path) -> LiteralRun:
    run = ten(root)
    run.give(READER, *run.log[:3])
    run.assign(READER, 0)
    run.clock -= 2 * MS
    run.give(READER, *run.log[5:])
    return run


@edge
def jumped_over_more_than_are_shown(root: Path) -> LiteralRun:
    run = ten(root)
    run.write(1, 150, 0)
    run.give(READER, run.log[0], run.log[-1])
    return run


@edge
def committed_far_ahead(root: Path) -> LiteralRun:
    run = ten(root)
    run.write(1, 150, 0)
    run.commit(READER, {0: 140})
    run.give(READER, *run.log)
    return run


@edge
def same_step_twice(root: Path) -> LiteralRun:
    run = ten(root)
    run.give(READER, *(run.log[n] for n in (0, 1, 2, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9)))
    return run


@edge
def aborted_and_read_by_two(root: Path) -> LiteralRun:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    record = run.append(run.send(1, 0, txn=1))
    run.end(1, 1, "abort")
    run.give(READER, record, record)
    run.give(OTHER, record)
    run.committed = list(run.log)
    return run


@edge
def two_readers_of_one_partition(root: Path) -> LiteralRun:
    """Each of them jumps over what the other one gets."""
    run = ten(root)
    run.assign(OTHER, 0)
    for n, record in enumerate(run.log):
        run.give(OTHER if n % 2 else READER, record)
    return run


@edge
def jumped_over_a_damaged_record(root: Path) -> LiteralRun:
    run = ten(root)
    run.log[4] = Record(0, 0, 0, 4, flags=BAD_PAYLOAD)
    run.give(READER, *run.log[:4], *run.log[5:])
    return run


@edge
def steps_from_and_to_damaged_records(root: Path) -> LiteralRun:
    run = ten(root)
    run.log[4], run.log[6] = Record(0, 0, 0, 4, flags=BAD_PAYLOAD), Record(9, 9, 0, 6, flags=FOREIGN_RUN)
    run.give(READER, *(run.log[n] for n in (0, 4, 6, 4, 9, 6)))
    return run


@edge
def committed_over_strangers(root: Path) -> LiteralRun:
    run = ten(root)
    run.log[4], run.log[6] = Record(0, 0, 0, 4, flags=BAD_PAYLOAD), Record(9, 9, 0, 6, flags=FOREIGN_RUN)
    run.give(READER, *run.log[:3])
    run.commit(READER, {0: 9})
    run.give(READER, *run.log[3:])
    return run


@edge
def contested_and_given_twice(root: Path) -> LiteralRun:
    """Two messages of different sessions claim a position."""
    run = ten(root)
    run.ack(run.send(2, 0), 0, 5)
    run.send(2, 0)
    run.log[5] = replace(run.log[5], session=2, seq=1)
    run.give(READER, *run.log, run.log[5])
    return run


@edge
def contested_and_never_given(root: Path) -> LiteralRun:
    run = ten(root)
    run.ack(run.send(2, 0), 0, 5)
    run.give(READER, *run.log[:5], *run.log[6:])
    return run


@edge
def one_message_in_two_partitions(root: Path) -> LiteralRun:
    run = ten(root)
    run.log.append(replace(run.log[3], partition=1, offset=0))
    return run


@edge
def keyed_message_in_two_partitions(root: Path) -> LiteralRun:
    run = LiteralRun(root)
    run.session(1)
    run.write(1, 3, 0, key=4, chosen=True)
    run.log.append(replace(run.log[1], partition=1, offset=0))
    return run


@edge
def transaction_without_events(root: Path) -> LiteralRun:
    run = ten(root, Mode.EXACTLY_ONCE)
    run.append(run.send(1, 0, txn=5))
    run.committed = list(run.log)
    return run


@edge
def transaction_with_an_event_of_its_end_only(root: Path) -> LiteralRun:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    record = run.append(run.send(1, 0, txn=1))
    run.give(READER, record)
    run.event("txn", "producer-1.0", session=1, txn=1, step="ended", intent="commit", did="commit", outcome=1)
    run.committed = list(run.log)
    return run


@edge
def torn_without_acks(root: Path) -> LiteralRun:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    made = [run.append(run.send(1, 0, txn=1), ack=n != 1) for n in range(4)]
    run.end(1, 1)
    run.log = [made[0], made[3]]
    return run


@edge
def torn_between_partitions(root: Path) -> LiteralRun:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    made = [run.append(run.send(1, n % 3, txn=1)) for n in range(6)]
    run.end(1, 1)
    run.committed = [r for r in made if r.partition != 1]
    return run


@edge
def late_and_lost_together(root: Path) -> LiteralRun:
    """A transaction with three records: one visible, one behind the last stable offset, one gone."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    made = [run.append(run.send(1, n, txn=1)) for n in (0, 0, 1)]
    run.end(1, 1)
    run.log.remove(made[1])
    run.committed = [made[0]]
    run.bounds[1] = (0, 1, 0)
    return run


@edge
def key_moved_and_moved_back(root: Path) -> LiteralRun:
    run = LiteralRun(root)
    run.manifest["topic_unchanged"] = False
    run.session(1)
    for partition in (0, 1, 0, 2):
        run.write(1, 2, partition, key=3, chosen=True)
    run.assign(READER, 0, 1, 2)
    by_partition = [[r for r in run.log if r.partition == p] for p in (2, 1, 0)]
    for records in by_partition:
        run.give(READER, *records, apart=False)
    return run


@edge
def key_given_from_two_partitions_at_once(root: Path) -> LiteralRun:
    run = LiteralRun(root)
    run.manifest["topic_unchanged"] = False
    run.session(1)
    old, new = run.write(1, 1, 0, key=3, chosen=True), run.write(1, 1, 1, key=3, chosen=True)
    run.give(READER, *new, *old, apart=False)
    return run


@edge
def key_overtaken_in_both_ways(root: Path) -> LiteralRun:
    """Overtaken by another session in its partition, and by its own in another: one finding, with the latest sent."""
    run = LiteralRun(root)
    run.manifest["topic_unchanged"] = False
    run.session(1)
    run.session(2)
    first = run.send(1, 0, key=3, chosen=True)
    run.ack(first, 0, 1)
    run.tick(1)
    other = run.append(run.send(2, 0, key=3, chosen=True), 0)
    run.log.append(first.at(0, 1))
    moved = run.append(run.send(1, 1, key=3, chosen=True), 1)
    run.give(READER, moved, other, run.log[1])
    return run


@edge
def read_uncommitted_by_choice(root: Path) -> LiteralRun:
    """Premature, aborted and jumped over, all by a group that reads uncommitted."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, isolation="read_uncommitted")
    run.session(1)
    made = [run.append(run.send(1, 0, txn=1)) for _ in range(3)]
    run.give(READER, made[0])
    run.end(1, 1)
    made += [run.append(run.send(1, 0, txn=2), gap=1) for _ in range(3)]
    run.end(1, 2, "abort")
    run.give(READER, made[2], made[3], made[5])
    return run
