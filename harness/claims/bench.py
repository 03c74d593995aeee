"""The bench of a claim's case: a cluster, runs of scenarios on it, and plain clients."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.claims.claim import Observation, Part, PendingObservation
from harness.contracts import Lane, TopicSettings, Verdict
from harness.expectation import requirement_text
from harness.injector import why_not_applicable
from harness.kafka import connection
from harness.waiting import wait_until

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer
    from confluent_kafka.admin import AdminClient

    from harness.campaign import Campaign, Result
    from harness.contracts import Cluster
    from harness.scenario import Scenario

READ_LIMIT_S = 60.0


class NotApplicable(Exception):
    """The cluster lacks something that the case of a claim needs; the text is the reason."""


@dataclass(frozen=True)
class ReadRecord:
    """A record as a reader got it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time_ms: int
    headers: tuple[tuple[str, bytes], ...]


class Bench:
    """A cluster with what cases use on it. Topics that a case makes are deleted when it ends."""

    def __init__(self, cluster: Cluster, campaign: Campaign, seed: int, claim: str) -> None:
        self.cluster = cluster
        self._campaign, self._seed, self._claim = campaign, seed, claim
        self._numbers = itertools.count(1)
        self._topics: list[str] = []

    # --- runs ---

    def run(self, scenario: Scenario) -> Result:
        """Execute and judge a scenario; raise NotApplicable if the cluster lacks a power that it needs."""
        return self._begun(scenario).result()

    def observed(
        self,
        scenario: Scenario,
        situation: str,
        part: Part = Part.STATED,
        *,
        holds_if: Verdict = Verdict.HELD,
    ) -> PendingObservation:
        """Run a scenario. The statement holds if the verdict is `holds_if` and the run shows what the scenario requires.

        The run is reconciled during the next runs, so the observation is pending.
        """
        return PendingObservation(
            self._begun(scenario), lambda result: observation(result, situation, part, holds_if=holds_if)
        )

    def _begun(self, scenario: Scenario) -> Future[Result]:
        if reason := why_not_applicable(scenario, self.cluster):
            raise NotApplicable(reason)
        return self._campaign.run(scenario.with_seed(self._seed))

    # --- plain clients ---

    def name(self, use: str = "topic") -> str:
        """Return a new name for a topic, a group or a transactional id."""
        return f"{connection.prefix_of(self.cluster)}claim-{self._claim.lower()}-{use}-{next(self._numbers)}"

    def topic(self, **settings: Any) -> str:
        """Create a topic; the arguments are those of TopicSettings."""
        name = self.name()
        self.cluster.create_topic(name, TopicSettings(**settings))
        self._topics.append(name)
        return name

    def settings(self, lane: Lane = Lane.CONTROL, **more: Any) -> dict[str, Any]:
        """Return settings of a librdkafka client; names in `more` have _ for a dot."""
        return connection.settings(self.cluster, lane, **more)

    def producer(self, lane: Lane = Lane.CONTROL, **more: Any) -> Producer:
        from confluent_kafka import Producer

        return Producer(self.settings(lane, **more))

    @contextmanager
    def consumer(self, lane: Lane = Lane.CONTROL, **more: Any) -> Iterator[Consumer]:
        """Open a consumer, by default of a new group that begins with the first record and does not commit."""
        from confluent_kafka import Consumer

        usual = {"group_id": self.name("group"), "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = Consumer(self.settings(lane, **{**usual, **more}))
        try:
            yield consumer
        finally:
            consumer.close()

    def admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self.settings(socket_timeout_ms=5000))

    def send(self, topic: str, values: Sequence[Mapping[str, Any]], **more: Any) -> list[ReadRecord]:
        """Send records in order and return them as they were acked; raise WaitTimeout if one is not acked in time."""
        producer, acked = self.producer(**{"acks": "all", **more}), {}

        def keep(number: int) -> Callable[[Any, Message], None]:
            def done(error: Any, message: Message) -> None:
                if error is None:
                    acked[number] = _record(message)

            return done

        for number, record in enumerate(values):
            producer.produce(topic, **record, on_delivery=keep(number))
            producer.poll(0)
        wait_until(
            lambda: producer.flush(1.0) == 0 and len(acked) == len(values),
            READ_LIMIT_S,
            lambda: f"{topic}: {len(acked)} of {len(values)} records were acked",
        )
        return [acked[number] for number in range(len(values))]

    def read(self, topic: str, count: int, limit_s: float = READ_LIMIT_S, **more: Any) -> list[ReadRecord]:
        """Read the first `count` records with a new group, in the order in which they came."""
        with self.consumer(**more) as consumer:
            consumer.subscribe([topic])
            return self.take(consumer, count, limit_s)

    @staticmethod
    def take(consumer: Consumer, count: int, limit_s: float = READ_LIMIT_S) -> list[ReadRecord]:
        """Return the next `count` records of a consumer, in the order in which they came."""
        records: list[ReadRecord] = []
        ends = time.monotonic() + limit_s
        while len(records) < count and time.monotonic() < ends:
            polled = consumer.consume(min(500, count - len(records)), timeout=0.2)
            records += [_record(message) for message in polled if message.error() is None]
        return records

    def close(self) -> None:
        for name in self._topics:
            self.cluster.delete_topic(name)
        self._topics.clear()


def observation(
    result: Result, situation: str, part: Part = Part.STATED, *, holds_if: Verdict = Verdict.HELD
) -> Observation:
    """Return the observation of a run. It is None, without a proof, if the run is INCONCLUSIVE or lacks what it requires."""
    judged = result.judgement
    counts = ", ".join(
        f"{result.count(name):,} {name}" for name in ("acked", "lost", "duplicated", "reordered")
    )
    required = requirement_text(judged.required, judged.found) + "; " if judged.required else ""
    verdict = result.verdict
    proven = verdict is not Verdict.INCONCLUSIVE and (verdict is not holds_if or not judged.shortfalls)
    doubts = "; ".join([*judged.inconclusive, *(s.text for s in judged.shortfalls)][:2])
    evidence = f"{verdict}: {required}{counts}" + (f" ({doubts})" if doubts else "")
    return Observation(situation, verdict is holds_if if proven else None, evidence, part, result.run.path)


def _record(message: Message) -> ReadRecord:
    partition, offset = message.partition(), message.offset()
    sent: Any = message.headers() or ()  # its published type is wider than what a reader gets
    headers = tuple((name, value or b"") for name, value in sent)
    return ReadRecord(
        -1 if partition is None else partition,
        -1 if offset is None else offset,
        message.key(),
        message.value(),
        message.timestamp()[1],
        headers,
    )
