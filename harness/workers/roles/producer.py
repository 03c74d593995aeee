"""A producer that sends plain records at a steady pace until it is asked to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Client, Counters, ProducerLost, SenderSpec
from harness.ledger.journal import Ledger
from harness.workers.counters import Board
from harness.workers.pacing import Pace
from harness.workers.producer_session import Session
from harness.workers.roles._patience import Patience


@dataclass(frozen=True, kw_only=True)
class ProducerRoleSpec(SenderSpec):
    role: ClassVar[str] = "producer"

    records_per_s: float
    flush_limit_s: float


class ProducerRole:
    spec_class = ProducerRoleSpec

    def __init__(self, spec: ProducerRoleSpec, board: Board) -> None:
        self._spec, self._board = spec, board

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        incarnation = self._spec.incarnation
        done = Counters()
        patience = Patience(self._spec.name, ledger, until)
        while not until():
            session = Session(self._spec, ledger, self._board, incarnation)
            try:
                self._send_until(session, client, ledger, until, done)
                return
            except ProducerLost as lost:
                done = session.show(done)
                incarnation += 1
                patience.ended(session, lost)

    def _send_until(
        self, session: Session, client: Client, ledger: Ledger, until: Callable[[], bool], done: Counters
    ) -> None:
        producer = session.open(client)
        pace = Pace(self._spec.records_per_s)
        try:
            while not until():
                due = pace.due()
                if due:
                    session.send(producer, session.next_messages(due))
                producer.poll(0.01)
                session.show(done)
            left = producer.flush(self._spec.flush_limit_s)
            session.show(done)
            if left:
                ledger.events.write("unflushed", session=session.number, records=left)
        finally:
            producer.close()


role_class = ProducerRole
