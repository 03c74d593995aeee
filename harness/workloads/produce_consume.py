"""The plain workload, for every mode: producers send to one topic, a group reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.contracts import Lane, MemberSpec, Mode, SenderSpec, TopicSettings, WorkerSpec
from harness.ledger.transform import Transform
from harness.scenario import Scenario
from harness.workers.roles.consumer import ConsumerRoleSpec
from harness.workers.roles.producer import ProducerRoleSpec
from harness.workers.roles.transactional_producer import TransactionalProducerRoleSpec


class ProduceConsume:
    """Several producers, keyed and keyless, transactional in exactly-once; one group of several members."""

    def __init__(self, scenario: Scenario, topic: str, group: str) -> None:
        self._scenario, self._topic, self._group = scenario, topic, group

    def roles(self) -> Sequence[WorkerSpec]:
        """Return one specification for each worker process."""
        return [*self.consumers(), *self.producers()]

    def more_topics(self) -> Sequence[tuple[str, TopicSettings]]:
        return ()

    def transform(self) -> Transform | None:
        return None

    def producers(self) -> Sequence[SenderSpec]:
        if self._scenario.mode is Mode.EXACTLY_ONCE:
            return self.transactional_producers()
        limit_s = self._scenario.timings.flush_limit_s
        return [ProducerRoleSpec(**common, flush_limit_s=limit_s) for common in self._common()]

    def transactional_producers(self) -> list[TransactionalProducerRoleSpec]:
        settings = self._scenario.producers
        return [
            TransactionalProducerRoleSpec(
                **common,
                records_per_transaction=settings.records_per_transaction,
                aborted_share=settings.aborted_share,
                end_limit_s=self._scenario.transactions.end_limit_s,
            )
            for common in self._common()
        ]

    def _common(self) -> list[dict[str, Any]]:
        """Return the fields that plain and transactional producers share, for each of them."""
        scenario, settings = self._scenario, self._scenario.producers
        return [
            {
                "name": f"producer-{number + 1}",
                "number": number + 1,
                "lane": Lane.PRODUCE,
                "topic": self._topic,
                "mode": scenario.mode,
                "keyed": number < settings.keyed,
                "partitions": scenario.topic.partitions,
                "records_per_s": settings.records_per_s,
                "payload_bytes": settings.payload_bytes,
                "keys": settings.keys,
                "seed": scenario.seed * 1000 + number,
                "producer": settings.options_of(number + 1),
                "age_s": settings.age_s,
                "sends_again": settings.sends_again,
            }
            for number in range(settings.keyed + settings.keyless)
        ]

    def consumers(self) -> Sequence[MemberSpec]:
        return self.plain_consumers()

    def plain_consumers(self) -> list[ConsumerRoleSpec]:
        scenario, settings = self._scenario, self._scenario.consumers
        return [
            ConsumerRoleSpec(
                name=f"consumer-{number + 1}",
                lane=Lane.CONSUME,
                topic=self._topic,
                group=self._group,
                mode=scenario.mode,
                isolation=settings.isolation,
                auto_commit=settings.auto_commit,
                instance_id=f"consumer-{number + 1}" if settings.static else "",
                consumer=settings.options(),
            )
            for number in range(settings.members)
        ]


workload_class = ProduceConsume
