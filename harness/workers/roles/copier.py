"""A member of a pipeline: it reads the input in a group, sends the output and commits its position.

In exactly-once all of that is one transaction, and after an abort it reads the same input again, as an application must.
The other modes differ in when the position is committed: after the output was acked, or before it is sent.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from harness.contracts import (
    Batch,
    Client,
    Consumer,
    Counters,
    MemberSpec,
    Mode,
    Outcome,
    Producer,
    ProducerLost,
    SenderSpec,
    Transactional,
)
from harness.ledger.journal import Ledger
from harness.ledger.transform import Transform
from harness.scenario import Pipeline
from harness.workers.breakpoints import NO_MOMENTS, Moment, Moments, before, midway
from harness.workers.counters import Board
from harness.workers.effects import effects_of
from harness.workers.producer_session import Session
from harness.workers.roles._assignments import Assignments
from harness.workers.roles._consumer_spec import member_spec
from harness.workers.roles._end_transaction import end_transaction
from harness.workers.roles._patience import Patience
from harness.workers.roles._positions import Positions

POLL_S = 0.1
FLUSH_LIMIT_S = 30.0
SEND_OFFSETS_LIMIT_S = 15.0  # a rebalance waits for all members of the group
ASK_LIMIT_S = 10.0
ASK_AGAIN_S = 0.1


@dataclass(frozen=True, kw_only=True)
class CopierRoleSpec(SenderSpec, MemberSpec):
    role: ClassVar[str] = "copier"

    kind: Pipeline
    transform: Transform
    inputs_per_transaction: int
    aborted_share: float
    end_limit_s: float

    @property
    def has_id_per_session(self) -> bool:
        return self.kind is Pipeline.RANDOM_IDS


class CopierRole:
    spec_class = CopierRoleSpec

    def __init__(self, spec: CopierRoleSpec, board: Board) -> None:
        self._spec, self._board = spec, board
        self._moments = Moments(board.path)
        self._random = random.Random(spec.seed)
        self._counters = Counters()
        self._positions = Positions()

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        self._ledger, self._journal, self._until = ledger, ledger.deliveries(), until
        self._assignments = Assignments(ledger, self._spec.name)
        consumer = client.open_consumer(member_spec(self._spec), self._on_assignment)
        self._speaks_for_it: Consumer = consumer
        if self._spec.kind is Pipeline.NO_GROUP_METADATA:
            # A consumer that knows the group's name and is not a member: its metadata name no member.
            stranger = replace(member_spec(self._spec), assign={})
            self._speaks_for_it = client.open_consumer(stranger, lambda how, partitions: None)
        incarnation = self._spec.incarnation
        patience = Patience(self._spec.name, ledger, until)
        try:
            while not until():
                session = Session(self._spec, ledger, self._board, incarnation)
                try:
                    producer = session.open(client)
                    try:
                        self._copy_until(session, producer, consumer, until)
                    finally:
                        producer.close()
                    trouble = None
                except ProducerLost as lost:
                    trouble = lost
                self._counters = session.show(self._counters)
                incarnation += 1
                patience.ended(session, trouble)
        finally:
            consumer.close()

    def _copy_until(
        self, session: Session, producer: Producer, consumer: Consumer, until: Callable[[], bool]
    ) -> None:
        copy = {
            Mode.EXACTLY_ONCE: self._in_a_transaction,
            Mode.AT_MOST_ONCE: self._commit_then_send,
        }.get(self._spec.mode, self._send_then_commit)
        most, txn = self._spec.inputs_per_transaction, 0
        # An earlier producer may have left the reader ahead of the committed offsets.
        self._rewind(consumer)
        while not until():
            batch = consumer.poll(POLL_S, self._random.randint(1, most))
            self._assignments.polled()
            positions = self._positions.after(batch)
            if not positions:
                producer.poll(0)
                continue
            if self._moments.wanted(Moment.BEFORE_WORK) and self._has_output(batch):
                self._moments.come_to(Moment.BEFORE_WORK)
            txn += 1
            done = copy(session, producer, consumer, batch, positions, txn)
            if self._spec.kind is Pipeline.NOT_REWOUND:
                self._positions.passed({} if done else positions)
            elif not done:
                self._rewind(consumer)
            session.show(self._counters)

    # --- one function per mode; each returns True to go on from here, False to read the batch again ---

    def _in_a_transaction(
        self, session: Session, producer: Producer, consumer: Consumer, batch: Batch, positions: Mapping[int, int], txn: int
    ) -> bool:  # fmt: skip
        assert isinstance(producer, Transactional)
        abort_intended = self._random.random() < self._spec.aborted_share
        intent = "abort" if abort_intended else "commit"
        record = partial(self._ledger.events.write, "txn", session=session.number, txn=txn, intent=intent)
        record(step="begin")
        producer.begin()
        made = self._send(session, producer, batch, txn, abort_intended)
        # The worker stops only in a transaction that matters: with output, and meant to be committed.
        moments = self._moments if made and not abort_intended else NO_MOMENTS
        # Read the request once: if it arrives after this point the records are not flushed yet, so the worker stops in
        # a later transaction.
        after_produce = moments.wanted(Moment.AFTER_PRODUCE)
        midways = bool(made) and self._moments.wanted(midway(intent))
        if after_produce or midways or abort_intended:
            # Aborting drops the records in the local queue; after a flush they are in the log.
            producer.flush(FLUSH_LIMIT_S)
        if after_produce:
            moments.come_to(Moment.AFTER_PRODUCE)
        if midways:
            self._moments.come_to(midway(intent))
        by_consumer = self._spec.kind is Pipeline.OFFSETS_BY_CONSUMER
        sent = (
            Outcome.ACKED
            if by_consumer
            else producer.send_offsets(positions, self._speaks_for_it, SEND_OFFSETS_LIMIT_S)
        )
        moments.come_to(Moment.AFTER_SEND_OFFSETS)
        did = "commit" if sent is Outcome.ACKED and not abort_intended else "abort"
        if sent is Outcome.UNKNOWN:
            raise ProducerLost(
                f"transaction {txn}: it is unknown whether its offsets were added: {producer.trouble}"
            )
        if made:
            self._moments.come_to(before(did))
        did, outcome = end_transaction(producer, did, self._spec.end_limit_s, self._moments, record)
        if did == "commit":
            self._record_commit(positions, outcome, "")
        if outcome is not Outcome.ACKED:
            # The next producer with this id ends the open transaction and fences this one, late requests included.
            raise ProducerLost(f"the end of transaction {txn} is {outcome.name.lower()}: {producer.trouble}")
        moments.come_to(Moment.AFTER_COMMIT)
        if did == "commit" and by_consumer:
            outcome, error = consumer.commit(positions)
            self._record_commit(positions, outcome, error)
        return did == "commit"

    def _send_then_commit(
        self, session: Session, producer: Producer, consumer: Consumer, batch: Batch, positions: Mapping[int, int], txn: int
    ) -> bool:  # fmt: skip
        acked_before, sent = session.journal.outcomes[Outcome.ACKED], self._send(session, producer, batch)
        producer.flush(FLUSH_LIMIT_S)
        self._moments.come_to(Moment.AFTER_PRODUCE)
        if session.journal.outcomes[Outcome.ACKED] - acked_before < sent:
            return False  # some records may not be written: send the output again
        outcome, error = consumer.commit(positions)
        self._record_commit(positions, outcome, error)
        return True

    def _commit_then_send(
        self, session: Session, producer: Producer, consumer: Consumer, batch: Batch, positions: Mapping[int, int], txn: int
    ) -> bool:  # fmt: skip
        outcome, error = consumer.commit(positions)
        self._record_commit(positions, outcome, error)
        if outcome is Outcome.ACKED and len(batch.rows):  # at-most-once drops the batch if its commit failed
            self._moments.come_to(Moment.AFTER_COMMIT)
            self._send(session, producer, batch)
            if self._moments.wanted(Moment.AFTER_PRODUCE):
                producer.flush(FLUSH_LIMIT_S)
                self._moments.come_to(Moment.AFTER_PRODUCE)
        producer.poll(0)
        return True

    # --- parts of these functions ---

    def _send(
        self, session: Session, producer: Producer, batch: Batch, txn: int = 0, abort_intended: bool = False
    ) -> int:
        """Record the batch as delivered and send its effects. Return how many records were sent."""
        if not len(batch.rows):
            return 0
        self._journal.append(batch.rows)
        self._counters = self._counters.plus(delivered=len(batch.rows))
        # In the order of the log, partition by partition, as the records were read.
        messages = session.effects(
            np.sort(batch.rows, order=["partition", "offset"]), self._spec.transform, txn, abort_intended
        )
        session.send(producer, messages)
        return len(messages)

    def _has_output(self, batch: Batch) -> bool:
        return len(effects_of(batch.rows, self._spec.transform, self._spec.partitions).keys) > 0

    def _rewind(self, consumer: Consumer) -> None:
        """Go back to the committed offsets of the group, and record it: reading records again is then intended."""
        while (partitions := consumer.rewind(ASK_LIMIT_S)) is None and not self._until():
            time.sleep(ASK_AGAIN_S)
        if partitions:
            self._assignments.record("rewound", partitions)

    def _record_commit(self, positions: Mapping[int, int], outcome: Outcome, error: str) -> None:
        self._ledger.events.write(
            "commit", reader=self._spec.name, offsets=positions, outcome=outcome, error=error
        )
        if outcome is Outcome.ACKED:
            self._positions.committed(positions)
            self._counters = self._counters.plus(committed=1)

    def _on_assignment(self, how: str, partitions: list[int]) -> None:
        self._assignments.record(how, partitions)
        self._positions.forget(partitions)


role_class = CopierRole
