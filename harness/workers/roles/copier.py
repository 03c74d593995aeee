"""A member of a pipeline: it reads the input in a group, makes the output of it and remembers how far it is.

In exactly-once all of that is one transaction, and after an abort it reads again what it had read, as an application must.
The other modes differ in when the position is committed: after the output was acked, or before it is sent.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from harness.contracts import (
    Batch,
    Client,
    Consumer,
    ConsumerSpec,
    Counters,
    Mode,
    Outcome,
    Producer,
    ProducerLost,
    Transactional,
)
from harness.ledger.journal import Ledger
from harness.ledger.transform import Transform
from harness.scenario import Pipeline
from harness.workers.breakpoints import NO_MOMENTS, Moment, Moments, before, midway
from harness.workers.counters import Board
from harness.workers.producer_session import Session
from harness.workers.roles._assignments import Assignments
from harness.workers.roles._consumer_spec import reader_spec
from harness.workers.roles._end_transaction import end_transaction
from harness.workers.roles._patience import Patience

POLL_S = 0.1
FLUSH_LIMIT_S = 30.0
SEND_OFFSETS_LIMIT_S = 15.0  # a group that shares its partitions anew waits for all of its members
ASK_LIMIT_S = 10.0
ASK_AGAIN_S = 0.1


class CopierRole:
    def __init__(self, spec: Mapping[str, Any], board: Board) -> None:
        self._spec, self._board = spec, board
        self._moments = Moments(board.path)
        self._random = random.Random(spec["seed"])
        self._transform = Transform(spec["most_effects"], spec["poison_share"])
        self._counters = Counters()
        self._committed: dict[int, int] = {}  # what this member knows to be committed

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        self._ledger, self._journal, self._until = ledger, ledger.deliveries(), until
        self._assignments = Assignments(ledger, self._spec["name"])
        consumer = client.open_consumer(self._consumer_spec(), self._on_assignment)
        self._speaks_for_it: Consumer = consumer
        if self._spec["kind"] == Pipeline.NO_GROUP_METADATA:
            # One that knows the group's name and is no member: all that the broker is told then.
            stranger = replace(self._consumer_spec(), assign={})
            self._speaks_for_it = client.open_consumer(stranger, lambda how, partitions: None)
        incarnation = self._spec["incarnation"]
        patience = Patience(self._spec["name"], ledger, until)
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
        }.get(Mode(self._spec["mode"]), self._send_then_commit)
        most, txn = self._spec["inputs_per_transaction"], 0
        # A producer before this one may have left the reader ahead of what is committed.
        self._rewind(consumer)
        while not until():
            batch = consumer.poll(POLL_S, self._random.randint(1, most))
            self._assignments.polled()
            positions = self._positions(batch)
            if not positions:
                producer.poll(0)
                continue
            txn += 1
            if not copy(session, producer, consumer, batch, positions, txn):
                self._rewind(consumer)
            session.show(self._counters)

    # --- the ways to do it; each says whether to go on from here, or else to read again what was read ---

    def _in_a_transaction(
        self, session: Session, producer: Producer, consumer: Consumer, batch: Batch, positions: Mapping[int, int], txn: int
    ) -> bool:  # fmt: skip
        assert isinstance(producer, Transactional)
        abort_intended = self._random.random() < self._spec["aborted_share"]
        intent = "abort" if abort_intended else "commit"
        tell = partial(self._ledger.events.write, "txn", session=session.number, txn=txn, intent=intent)
        tell(step="begin")
        producer.begin()
        made = self._send(session, producer, batch, txn, abort_intended)
        # Who is asked to stop at a moment does so in a transaction that matters: with output, and to be committed.
        moments = self._moments if made and not abort_intended else NO_MOMENTS
        # Looked at once: who is asked only now has not flushed yet, and stops in a later transaction.
        after_produce = moments.wanted(Moment.AFTER_PRODUCE)
        midways = bool(made) and self._moments.wanted(midway(intent))
        if after_produce or midways or abort_intended:
            # Aborting drops what is still in the local queue; flushed, the records really stand in the log.
            producer.flush(FLUSH_LIMIT_S)
        if after_produce:
            moments.come_to(Moment.AFTER_PRODUCE)
        if midways:
            self._moments.come_to(midway(intent))
        by_consumer = self._spec["kind"] == Pipeline.OFFSETS_BY_CONSUMER
        sent = (
            Outcome.ACKED
            if by_consumer
            else producer.send_offsets(positions, self._speaks_for_it, SEND_OFFSETS_LIMIT_S)
        )
        moments.come_to(Moment.AFTER_SEND_OFFSETS)
        did = "commit" if sent is Outcome.ACKED and not abort_intended else "abort"
        if sent is Outcome.UNKNOWN:
            raise ProducerLost(f"whether transaction {txn} has its offsets is unknown: {producer.trouble}")
        if made:
            self._moments.come_to(before(did))
        did, outcome = end_transaction(producer, did, self._spec["end_limit_s"], self._moments, tell)
        if did == "commit":
            self._tell_commit(positions, outcome, "")
        if outcome is not Outcome.ACKED:
            # The next producer of this id ends what this one left open, and fences it, late requests included.
            raise ProducerLost(f"the end of transaction {txn} is {outcome.name.lower()}: {producer.trouble}")
        moments.come_to(Moment.AFTER_COMMIT)
        if did == "commit" and by_consumer:
            outcome, error = consumer.commit(positions)
            self._tell_commit(positions, outcome, error)
        return did == "commit"

    def _send_then_commit(
        self, session: Session, producer: Producer, consumer: Consumer, batch: Batch, positions: Mapping[int, int], txn: int
    ) -> bool:  # fmt: skip
        acked_before, sent = session.journal.outcomes[Outcome.ACKED], self._send(session, producer, batch)
        producer.flush(FLUSH_LIMIT_S)
        self._moments.come_to(Moment.AFTER_PRODUCE)
        if session.journal.outcomes[Outcome.ACKED] - acked_before < sent:
            return False  # not all of it is known to be written: make it again
        outcome, error = consumer.commit(positions)
        self._tell_commit(positions, outcome, error)
        return True

    def _commit_then_send(
        self, session: Session, producer: Producer, consumer: Consumer, batch: Batch, positions: Mapping[int, int], txn: int
    ) -> bool:  # fmt: skip
        outcome, error = consumer.commit(positions)
        self._tell_commit(positions, outcome, error)
        if outcome is Outcome.ACKED and len(batch.rows):  # else it is not worked on: that is the mode
            self._moments.come_to(Moment.AFTER_COMMIT)
            self._send(session, producer, batch)
            if self._moments.wanted(Moment.AFTER_PRODUCE):
                producer.flush(FLUSH_LIMIT_S)
                self._moments.come_to(Moment.AFTER_PRODUCE)
        producer.poll(0)
        return True

    # --- parts of them ---

    def _send(
        self, session: Session, producer: Producer, batch: Batch, txn: int = 0, abort_intended: bool = False
    ) -> int:
        """Work on what was read: it is recorded as delivered now. How many records were sent."""
        if not len(batch.rows):
            return 0
        self._journal.append(batch.rows)
        self._counters = self._counters.plus(delivered=len(batch.rows))
        # In the order of the log, partition by partition, as the records were read.
        messages = session.effects(
            np.sort(batch.rows, order=["partition", "offset"]), self._transform, txn, abort_intended
        )
        session.send(producer, messages)
        return len(messages)

    def _positions(self, batch: Batch) -> dict[int, int]:
        """Behind the last record may stand markers; the end tells that nothing is left before it."""
        positions = dict(batch.positions)
        for partition, end in batch.ends.items():
            if end > self._committed.get(partition, -1):
                positions[partition] = max(end, positions.get(partition, 0))
        return positions

    def _rewind(self, consumer: Consumer) -> None:
        """Read again from what the group has committed. That the reader goes back is its own wish, and told."""
        while (partitions := consumer.rewind(ASK_LIMIT_S)) is None and not self._until():
            time.sleep(ASK_AGAIN_S)
        if partitions:
            self._assignments.tell("rewound", partitions)

    def _tell_commit(self, positions: Mapping[int, int], outcome: Outcome, error: str) -> None:
        self._ledger.events.write(
            "commit", reader=self._spec["name"], offsets=positions, outcome=outcome, error=error
        )
        if outcome is Outcome.ACKED:
            self._committed |= positions
            self._counters = self._counters.plus(committed=1)

    def _on_assignment(self, how: str, partitions: list[int]) -> None:
        self._assignments.tell(how, partitions)
        for partition in partitions:
            self._committed.pop(partition, None)

    def _consumer_spec(self) -> ConsumerSpec:
        spec = self._spec
        return reader_spec(spec, spec["topic"], group=spec["group"], extra=spec["consumer_extra"])


role_class = CopierRole
