"""A member of the group under test. The mode decides what comes first, the commit or the work.

A delivery is recorded at the moment the record would be worked on: before its commit in all modes but
at-most-once, after it there. A batch whose commit failed is not worked on in at-most-once: that is the mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Batch, Client, Consumer, Counters, MemberSpec, Mode, Outcome
from harness.ledger.journal import Ledger, RowJournal
from harness.workers.breakpoints import Moment, Moments
from harness.workers.counters import Board
from harness.workers.roles._assignments import Assignments
from harness.workers.roles._consumer_spec import member_spec

POLL_S = 0.1
COMMIT_EVERY_S = 0.1  # a commit a batch would make the coordinator the bottleneck at high rates


@dataclass(frozen=True, kw_only=True)
class ConsumerRoleSpec(MemberSpec):
    role: ClassVar[str] = "consumer"
    stays_in_group: ClassVar[bool] = True

    auto_commit: bool = False


class ConsumerRole:
    spec_class: type[ConsumerRoleSpec] = ConsumerRoleSpec

    def __init__(self, spec: ConsumerRoleSpec, board: Board) -> None:
        self._spec, self._board = spec, board
        self._moments = Moments(board.path)
        self._counters = Counters()
        self._uncommitted: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._last_commit = 0.0

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        self._be_a_member(client, ledger, ledger.deliveries(), until)

    def _be_a_member(
        self, client: Client, ledger: Ledger, journal: RowJournal, until: Callable[[], bool]
    ) -> None:
        """Join the group, read until `until()` is true, and leave."""
        consumer = self._open(client, ledger)
        take = self._commit_then_work if self._spec.mode is Mode.AT_MOST_ONCE else self._work_then_commit
        try:
            while not until():
                batch = consumer.poll(POLL_S)
                self._assignments.polled()
                for offsets, outcome, error in batch.commits:
                    self._record_commit(ledger, offsets, outcome, error)
                take(batch, consumer, journal, ledger)
                self._board.show(self._counters)
            self._commit(consumer, ledger)
        finally:
            consumer.close()

    def _open(self, client: Client, ledger: Ledger) -> Consumer:
        self._assignments = Assignments(ledger, self._spec.name)

        def on_assignment(how: str, partitions: list[int]) -> None:
            self._assignments.record(how, partitions)
            # From here on another member may commit these partitions. If they come back, reading starts at its commit.
            for partition in partitions:
                self._uncommitted.pop(partition, None)
                self._committed.pop(partition, None)

        return client.open_consumer(member_spec(self._spec, self._spec.auto_commit), on_assignment)

    def _work_then_commit(
        self, batch: Batch, consumer: Consumer, journal: RowJournal, ledger: Ledger
    ) -> None:
        self._record(batch, journal)
        if len(batch.rows):
            self._moments.come_to(Moment.AFTER_WORK)
        self._uncommitted |= batch.positions
        self._at_the_end(batch)
        if self._uncommitted and time.monotonic() - self._last_commit >= COMMIT_EVERY_S:
            self._commit(consumer, ledger)

    def _commit_then_work(
        self, batch: Batch, consumer: Consumer, journal: RowJournal, ledger: Ledger
    ) -> None:
        self._uncommitted |= batch.positions
        self._at_the_end(batch)
        if self._uncommitted and self._commit(consumer, ledger) is Outcome.ACKED:
            self._record(batch, journal)

    def _at_the_end(self, batch: Batch) -> None:
        """Commit the end of a partition that was read to its end: only markers may follow the last record."""
        for partition, end in batch.ends.items():
            if end > self._committed.get(partition, -1):
                self._uncommitted[partition] = max(end, self._uncommitted.get(partition, 0))

    def _record(self, batch: Batch, journal: RowJournal) -> None:
        if len(batch.rows):
            self._moments.come_to(Moment.BEFORE_WORK)
            journal.append(batch.rows)
            self._counters = self._counters.plus(delivered=len(batch.rows))

    def _commit(self, consumer: Consumer, ledger: Ledger) -> Outcome:
        if not self._uncommitted:
            return Outcome.ACKED
        offsets, self._uncommitted = self._uncommitted, {}
        if self._spec.auto_commit:
            consumer.store(
                offsets
            )  # the library commits them in its own time and reports that with a later batch
            self._committed |= offsets
            return Outcome.ACKED
        outcome, error = consumer.commit(offsets)
        self._last_commit = time.monotonic()
        self._record_commit(ledger, offsets, outcome, error)
        if outcome is Outcome.ACKED:
            self._committed |= offsets
            self._counters = self._counters.plus(committed=1)
        elif outcome is Outcome.UNKNOWN:
            # Still owed, unless a rebalance takes the partition away: then on_assignment forgets it.
            self._uncommitted = {**offsets, **self._uncommitted}
        return outcome

    def _record_commit(
        self, ledger: Ledger, offsets: Mapping[int, int], outcome: Outcome, error: str
    ) -> None:
        ledger.events.write("commit", reader=self._spec.name, offsets=offsets, outcome=outcome, error=error)


role_class = ConsumerRole
