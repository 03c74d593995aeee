"""Check that the adapter of a client library fulfils its contract, on a started cluster and a new topic of it."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from harness.contracts import (
    Client,
    Cluster,
    Consumer,
    ConsumerSpec,
    Counting,
    Lane,
    Mode,
    Outcome,
    Producer,
    ProducerSpec,
    Transactional,
    Versioned,
)
from harness.ledger.message import BAD_PAYLOAD, Builder, Message
from harness.waiting import wait_until

RUN, SESSION, KEY = 7, 1, 5
LIMIT_S = 30.0
_COUNT = 60

Place = tuple[int, int]  # partition, offset
Seen = Mapping[int, Sequence[tuple[Place, int]]]  # by sequence number: where a reader got it, and its flags


def check_client(
    client: Client, cluster: Cluster, topic: str, partitions: int, *, limit_s: float = LIMIT_S
) -> None:
    """Check everything; the topic is empty and has so many partitions."""
    ClientCheck(client, cluster, topic, partitions, limit_s).all()


@dataclass(frozen=True)
class ClientCheck:
    """The checks of one client."""

    client: Client
    cluster: Cluster
    topic: str
    partitions: int
    limit_s: float

    def all(self) -> None:
        acked = self.check_sends()
        self.check_reads(acked)
        self.check_group(set(acked.values()))
        self.check_transactions()
        if isinstance(self.client, Versioned):
            assert all(self.client.versions().values()), self.client.versions()

    def check_sends(self) -> Mapping[int, Place]:
        """Check that each record gets one outcome, with its place in the log; the last one is damaged on purpose."""
        made = _messages(0, _COUNT, self.partitions)
        made.append(_damaged(_messages(_COUNT, 1, self.partitions)[0]))
        with self._producer(Mode.IDEMPOTENT) as producer:
            outcomes = self._sent(producer, made)
            if isinstance(producer, Counting):
                assert producer.partitions(self.limit_s) == self.partitions
        assert all(len(each) == 1 for each in outcomes.values()), "one outcome per record"
        assert all(each[0][0] == Outcome.ACKED for each in outcomes.values()), outcomes
        acked = {seq: each[0][1] for seq, each in outcomes.items()}
        assert all(acked[one.seq][0] == one.partition for one in made), "the partition that was asked for"
        return acked

    def check_reads(self, acked: Mapping[int, Place]) -> None:
        """Check that a reader that is assigned by hand gets every record once, where it was acked, with damage flagged."""
        everywhere = dict.fromkeys(range(self.partitions), 0)
        with self._consumer(assign=everywhere) as reader:
            seen = self._read(reader, len(acked))
            bounds = {partition: reader.bounds(partition, self.limit_s) for partition in everywhere}
        damaged = acked[_COUNT]
        flags = {place: flag for each in seen.values() for place, flag in each}
        assert flags.get(damaged, 0) & BAD_PAYLOAD, "a damaged payload is flagged"
        whole = {seq: [place for place, flag in each if not flag] for seq, each in seen.items()}
        for seq, place in acked.items():
            assert place == damaged or whole.get(seq) == [place], (
                f"record {seq}: {seen.get(seq)}, acked at {place}"
            )
        ends = {partition: sum(1 for at in acked.values() if at[0] == partition) for partition in everywhere}
        assert bounds == {partition: (0, end) for partition, end in ends.items()}

    def check_group(self, places: set[Place]) -> None:
        """Check that a member learns what it is assigned, and that it continues where the group has committed."""
        group, assigned = f"{self.topic}-group", list[tuple[str, list[int]]]()
        with self._consumer(group=group, tell=lambda *how: assigned.append(how)) as member:
            seen = self._read(member, len(places))
            assert {how for how, _ in assigned} == {"assigned"}, assigned
            ends: dict[int, int] = defaultdict(int)
            for partition, offset in places:
                ends[partition] = max(ends[partition], offset + 1)
            assert {place for each in seen.values() for place, _ in each} == places
            back = {partition: end - 1 for partition, end in ends.items()}
            assert member.commit(back) == (Outcome.ACKED, "")
            assert sorted(member.rewind(self.limit_s) or []) == sorted(
                {p for _, held in assigned for p in held}
            )
            again = self._read(member, len(back))
        assert {place for each in again.values() for place, _ in each} == set(back.items()), (
            "from the commit on"
        )

    def check_transactions(self) -> None:
        """Check that a transaction can be committed and aborted; a producer without transactions is not checked."""
        with self._producer(Mode.EXACTLY_ONCE, f"{self.topic}-id") as producer:
            if not isinstance(producer, Transactional):
                return
            for first, end in ((1000, producer.commit), (1010, producer.abort)):
                producer.begin()
                self._sent(producer, _messages(first, 3, 1))
                assert end(self.limit_s) is Outcome.ACKED, producer.trouble

    @contextmanager
    def _producer(self, mode: Mode, transactional_id: str = "") -> Iterator[Producer]:
        made = self.client.open_producer(
            ProducerSpec(
                bootstrap=self.cluster.bootstrap_servers(Lane.CONTROL),
                topic=self.topic,
                mode=mode,
                transactional_id=transactional_id,
                security=self.cluster.client_settings(Lane.CONTROL),
            )
        )
        try:
            yield made
        finally:
            made.close()

    @contextmanager
    def _consumer(
        self,
        *,
        group: str = "",
        assign: Mapping[int, int] | None = None,
        tell: Callable[[str, list[int]], None] = lambda _how, _partitions: None,
    ) -> Iterator[Consumer]:
        spec = ConsumerSpec(
            bootstrap=self.cluster.bootstrap_servers(Lane.CONTROL),
            topic=self.topic,
            run=RUN,
            mode=Mode.IDEMPOTENT,
            isolation="read_uncommitted",
            group=group,
            assign=assign,
            security=self.cluster.client_settings(Lane.CONTROL),
        )
        made = self.client.open_consumer(spec, tell)
        try:
            yield made
        finally:
            made.close()

    def _sent(self, producer: Producer, made: Sequence[Message]) -> dict[int, list[tuple[int, Place]]]:
        """Send the messages and return all their outcomes, by sequence number."""
        outcomes: dict[int, list[tuple[int, Place]]] = {one.seq: [] for one in made}
        threads = set[int]()

        def on_outcome(seq: int, outcome: int, partition: int, offset: int, _error: int) -> None:
            outcomes[seq].append((outcome, (partition, offset)))
            threads.add(threading.get_ident())

        for one in made:
            producer.send(one, on_outcome)
        assert producer.flush(self.limit_s) == 0, "a flush serves every outcome"
        producer.poll(0)
        assert threads == {threading.get_ident()}, "outcomes are reported in the thread of the caller"
        return outcomes

    def _read(self, reader: Consumer, count: int) -> Seen:
        """Poll until there are so many records, and once more."""
        seen: dict[int, list[tuple[Place, int]]] = defaultdict(list)

        def poll() -> int:
            batch = reader.poll(0.2)
            for row in batch.rows:
                place = int(row["partition"]), int(row["offset"])
                assert place[1] < batch.positions[place[0]], "the position is behind each record"
                seen[int(row["seq"])].append((place, int(row["flags"])))
            return sum(map(len, seen.values()))

        wait_until(
            lambda: poll() >= count,
            self.limit_s,
            lambda: f"the reader got {sum(map(len, seen.values()))} of {count}",
        )
        poll()
        return seen


def _messages(first: int, count: int, partitions: int) -> list[Message]:
    places = [seq % partitions for seq in range(first, first + count)]
    return Builder(RUN, SESSION, 128).build(first, [KEY] * count, places, int(time.time() * 1000))


def _damaged(one: Message) -> Message:
    payload = bytearray(one.payload)
    payload[-1] ^= 1
    return one._replace(payload=bytes(payload))
