"""A producer that sends everything in transactions, some of which it aborts on purpose."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from harness.contracts import (
    Client,
    Counters,
    Mode,
    Outcome,
    Producer,
    ProducerLost,
    SenderSpec,
    Transactional,
)
from harness.ledger.journal import Ledger
from harness.ledger.message import Message
from harness.workers.breakpoints import NO_MOMENTS, Moment, Moments, before, midway
from harness.workers.counters import Board
from harness.workers.pacing import Pace
from harness.workers.producer_session import Session
from harness.workers.roles._end_transaction import end_transaction
from harness.workers.roles._patience import Patience

FLUSH_LIMIT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class TransactionalProducerRoleSpec(SenderSpec):
    role: ClassVar[str] = "transactional_producer"

    records_per_s: float
    records_per_transaction: int
    aborted_share: float
    end_limit_s: float
    spread_s: float = 0.0  # from the first to the last record of a transaction
    timed_out_share: float = 0.0
    give_up_s: float = 0.0  # how long to sleep until the coordinator has surely aborted a transaction
    transactions_per_session: int = 0  # 0: no limit
    rest_s: float = 0.0  # after a session with that many transactions
    rival_of: str = ""  # the worker whose transactional id it takes, on purpose
    id_per_session: bool = False

    @property
    def transactional_id(self) -> str:
        return f"{self.topic}-{self.rival_of or self.name}" if self.mode is Mode.EXACTLY_ONCE else ""

    @property
    def has_id_per_session(self) -> bool:
        return self.id_per_session


class TransactionalProducerRole:
    spec_class = TransactionalProducerRoleSpec

    def __init__(self, spec: TransactionalProducerRoleSpec, board: Board) -> None:
        self._spec, self._board = spec, board
        self._random = random.Random(spec.seed)
        self._moments = Moments(board.path)

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        incarnation = self._spec.incarnation
        done = Counters()
        patience = Patience(self._spec.name, ledger, until)
        while not until():
            session = Session(self._spec, ledger, self._board, incarnation)
            try:
                producer = session.open(client)
                try:
                    self._transact_until(session, producer, ledger, until, done)
                finally:
                    producer.close()
                trouble = None
            except ProducerLost as lost:
                trouble = lost
            done = session.show(done)
            incarnation += 1
            patience.ended(session, trouble)

    def _transact_until(
        self, session: Session, producer: Producer, ledger: Ledger, until: Callable[[], bool], done: Counters
    ) -> None:
        assert isinstance(producer, Transactional)
        size = self._spec.records_per_transaction
        pace = Pace(self._spec.records_per_s, at_most=size)
        txn, owed = 0, 0
        while not until():
            owed += pace.due()
            if owed < size:
                producer.poll(0.01)
                continue
            owed = 0
            txn += 1
            abort_intended = self._random.random() < self._spec.aborted_share
            outcome = self._transact(session, producer, ledger, txn, size, abort_intended)
            session.show(done)
            if txn == self._spec.transactions_per_session:
                time.sleep(self._spec.rest_s)
                return
            if outcome is Outcome.UNKNOWN:
                # If the first request is late, ending the transaction again on the same producer could end the next
                # transaction instead. A new producer fences the old one, late requests included.
                raise ProducerLost(f"the end of transaction {txn} is unknown: {producer.trouble}")

    def _transact(
        self,
        session: Session,
        producer: Producer,
        ledger: Ledger,
        txn: int,
        size: int,
        abort_intended: bool,
    ) -> Outcome:
        assert isinstance(producer, Transactional)
        intent = "abort" if abort_intended else "commit"
        record = partial(ledger.events.write, "txn", session=session.number, txn=txn, intent=intent)
        record(step="begin")
        producer.begin()
        self._send(session, producer, session.next_messages(size, txn, abort_intended), intent)
        slow = not abort_intended and self._random.random() < self._spec.timed_out_share
        # The worker stops only in a transaction that is meant to be committed.
        moments = NO_MOMENTS if abort_intended else self._moments
        # Read the request once: if it arrives after this point the records are not flushed yet, so the worker stops in
        # a later transaction.
        after_produce = moments.wanted(Moment.AFTER_PRODUCE)
        if abort_intended or slow or after_produce:
            # Aborting drops the records in the local queue; after a flush they are in the log.
            producer.flush(FLUSH_LIMIT_S)
        if after_produce:
            moments.come_to(Moment.AFTER_PRODUCE)
        if slow:
            self._outsleep_the_coordinator(producer)
            ledger.events.write("outslept", session=session.number, txn=txn)
        self._moments.come_to(before(intent))
        did, outcome = end_transaction(producer, intent, self._spec.end_limit_s, self._moments, record)
        if did == "abort" and outcome is Outcome.ACKED:
            self._moments.come_to(Moment.AFTER_ABORT)
        return outcome

    def _send(self, session: Session, producer: Producer, messages: list[Message], intent: str) -> None:
        """Send all at once, or one by one over `spread_s`, as an application does that works on each record."""
        spread_s, sent = self._spec.spread_s, 0
        half = len(messages) // 2
        if half and self._moments.wanted(midway(intent)):
            session.send(producer, messages[:half])
            producer.flush(FLUSH_LIMIT_S)
            self._moments.come_to(midway(intent))
            sent = half
        if not spread_s:
            session.send(producer, messages[sent:])
            return
        for message in messages[sent:]:
            session.send(producer, [message])
            producer.poll(spread_s / len(messages))

    def _outsleep_the_coordinator(self, producer: Producer) -> None:
        """Wait until the coordinator has surely aborted the transaction: its timeout, plus the interval of the coordinator's checks."""
        wake = time.monotonic() + self._spec.give_up_s
        while time.monotonic() < wake:
            producer.poll(0.1)


role_class = TransactionalProducerRole
