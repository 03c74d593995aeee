"""Producer sessions: messages are recorded before they are sent. Used by plain and transactional producers."""

from __future__ import annotations

import dataclasses
import random
import time
from collections import deque

import numpy as np
import numpy.typing as npt

from harness.contracts import Client, Counters, Counting, Outcome, Producer, ProducerSpec, SenderSpec
from harness.kafka.client_settings import promised
from harness.ledger.journal import AttemptJournal, Ledger
from harness.ledger.message import ABORT_INTENDED, Builder, Message, fields_of
from harness.ledger.transform import Transform
from harness.workers.counters import Board
from harness.workers.effects import effects_of
from harness.workers.partition_count import PartitionCount
from harness.workers.session_numbers import session_number


class Session:
    """One producer session: a client, its journal, its sequence numbers. A new client is a new session."""

    def __init__(self, spec: SenderSpec, ledger: Ledger, board: Board, incarnation: int) -> None:
        self.number = session_number(spec.number, incarnation)
        self._spec, self._board = spec, board
        self._random = random.Random(f"{spec.seed}/{incarnation}")
        self._builder = Builder(spec.run, self.number, spec.payload_bytes)
        self._next_seq = 0
        self._sent: list[tuple[int, int]] = []  # key and partition by number, if messages are sent again
        self._unknown: deque[int] = deque()  # numbers of the messages to send again
        self._next_partition = spec.number
        self._partitions = PartitionCount(spec.partitions)
        self._ledger = ledger
        self.journal: AttemptJournal = ledger.attempts(self.number)
        ledger.events.write(
            "session",
            session=self.number,
            producer=spec.name,
            incarnation=incarnation,
            mode=spec.mode,
            **promised(spec.mode, spec.producer),
            transactional_id=self.transactional_id,
        )

    @property
    def transactional_id(self) -> str:
        stable = self._spec.transactional_id
        return f"{stable}-{self.number}" if stable and self._spec.has_id_per_session else stable

    def open(self, client: Client) -> Producer:
        spec = self._spec
        producer = client.open_producer(
            ProducerSpec(
                bootstrap=spec.bootstrap,
                security=spec.security,
                topic=spec.topic,
                mode=spec.mode,
                transactional_id=self.transactional_id,
                more_topics=spec.more_topics,
                options=spec.producer,
            )
        )
        if self.transactional_id:
            # From here on every other producer with this id is fenced, whatever it still sends.
            self._ledger.events.write("ready", session=self.number)
        if not spec.keyed and isinstance(producer, Counting):
            self._partitions.follow(producer)
        return producer

    def next_messages(self, count: int, txn: int = 0, abort_intended: bool = False) -> list[Message]:
        """Return the next `count` messages of this session."""
        topics = [0] * count
        if self._spec.keyed:
            keys = self._random.choices(range(self._spec.keys), k=count)
            partitions = [-1] * count
        elif many := self._spec.more_topics:
            # Topics in turn, so that a transaction of some size has records in all of them.
            keys = [-1] * count
            places = range(self._next_partition, self._next_partition + count)
            partitions = [place % self._partitions.count for place in places]
            topics = [place // self._partitions.count % (1 + len(many)) for place in places]
            self._next_partition += count
        else:
            # Runs of one partition, as batching clients send them; the next run goes to the next partition.
            keys = [-1] * count
            self._next_partition += 1
            partitions = [self._next_partition % self._partitions.count] * count
        if self._spec.sends_again:
            keys, partitions = self._with_unknown(keys, partitions)
        first, self._next_seq = self._next_seq, self._next_seq + count
        now_ms = time.time_ns() // 1_000_000 - int(self._spec.age_s * 1000)
        return self._builder.build(first, keys, partitions, now_ms, txn, abort_intended, topics)

    def _with_unknown(self, keys: list[int], partitions: list[int]) -> tuple[list[int], list[int]]:
        """Return the keys and partitions with those of messages of unknown outcome in front, as far as they fit."""
        again = [self._sent[self._unknown.popleft()] for _ in range(min(len(keys), len(self._unknown)))]
        all_of_them = [*again, *list(zip(keys, partitions, strict=True))[len(again) :]]
        self._sent += all_of_them
        return [key for key, _ in all_of_them], [partition for _, partition in all_of_them]

    def _outcome(self, seq: int, outcome: int, partition: int, offset: int, error: int) -> None:
        self.journal.outcome(seq, outcome, partition, offset, error)
        if outcome == Outcome.UNKNOWN:
            self._unknown.append(seq)

    def effects(
        self, inputs: npt.NDArray[np.void], transform: Transform, txn: int = 0, abort_intended: bool = False
    ) -> list[Message]:
        """Return the effects of these deliveries as the next messages of this session."""
        made = effects_of(inputs, transform, self._spec.partitions)
        first, self._next_seq = self._next_seq, self._next_seq + len(made.keys)
        return self._builder.build(
            first, made.keys, made.partitions, time.time_ns() // 1_000_000, txn, abort_intended, made.topics, made.origins
        )  # fmt: skip

    def send(self, producer: Producer, messages: list[Message]) -> None:
        """Record the attempts, then send. The recorded values are read from the payloads."""
        if not messages:
            return
        said = fields_of(messages)
        self.journal.attempts(
            messages[0].seq, said["key"], said["partition"], said["txn"], said["flags"] & ABORT_INTENDED, said["topic"]
        )  # fmt: skip
        outcome = self._outcome if self._spec.sends_again else self.journal.outcome
        send = producer.send
        for message in messages:
            send(message, outcome)

    def show(self, before: Counters) -> Counters:
        """Show this session's progress on the board, added to `before`, the progress of earlier sessions."""
        unknown, acked, rejected = self.journal.outcomes
        now = dataclasses.replace(
            before,
            attempted=before.attempted + self.journal.attempted,
            acked=before.acked + acked,
            failed=before.failed + unknown + rejected,
            sessions=before.sessions + 1,
        )
        self._board.show(now)
        return now
