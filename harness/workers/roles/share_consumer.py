"""A member of a share group (KIP-932). The mode decides what comes first, the acceptance or the work.

A delivery is recorded at the moment the record would be worked on: before its acceptance in all modes but at-most-once, after it
there. Records whose acceptance failed are given to a member again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Batch, Client, Counters, MemberSpec, Mode, Outcome, ShareMember, Sharing
from harness.errors import UsageError
from harness.ledger.journal import Ledger, RowJournal
from harness.workers.breakpoints import Moment, Moments
from harness.workers.counters import Board
from harness.workers.roles._consumer_spec import member_spec

POLL_S = 0.2
ACCEPT_LIMIT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class ShareConsumerRoleSpec(MemberSpec):
    role: ClassVar[str] = "share_consumer"
    shares: ClassVar[bool] = True


class ShareConsumerRole:
    spec_class = ShareConsumerRoleSpec

    def __init__(self, spec: ShareConsumerRoleSpec, board: Board) -> None:
        self._spec, self._board = spec, board
        self._moments = Moments(board.path)
        self._counters = Counters()

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        if not isinstance(client, Sharing):
            raise UsageError(f"client {self._spec.client} has no share groups; use the client confluent")
        journal = ledger.deliveries()
        take = self._accept_then_work if self._spec.mode is Mode.AT_MOST_ONCE else self._work_then_accept
        consumer = client.open_share_member(member_spec(self._spec))
        try:
            while not until():
                batch = consumer.poll(POLL_S)
                if len(batch.rows):
                    take(batch, consumer, journal)
                self._board.show(self._counters)
        finally:
            consumer.close()

    def _work_then_accept(self, batch: Batch, consumer: ShareMember, journal: RowJournal) -> None:
        self._work(batch, journal)
        self._moments.come_to(Moment.AFTER_WORK)
        self._accept(consumer)

    def _accept_then_work(self, batch: Batch, consumer: ShareMember, journal: RowJournal) -> None:
        if self._accept(consumer) is Outcome.ACKED:
            self._work(batch, journal)

    def _work(self, batch: Batch, journal: RowJournal) -> None:
        self._moments.come_to(Moment.BEFORE_WORK)
        journal.append(batch.rows)
        self._counters = self._counters.plus(delivered=len(batch.rows))

    def _accept(self, consumer: ShareMember) -> Outcome:
        outcome, _ = consumer.accept(ACCEPT_LIMIT_S)
        if outcome is Outcome.ACKED:
            self._counters = self._counters.plus(committed=1)
        return outcome


role_class = ShareConsumerRole
