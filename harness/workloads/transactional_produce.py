"""Transactions over many partitions and topics: commits, aborts, some that time out, and rivals for one transactional id.

Keyless producers write to all topics, keyed ones to the first. The group reads the first topic as in produce_consume; the
final reader and the observers read all topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.contracts import Mode, TopicSettings
from harness.kafka.client_settings import effective
from harness.scenario import Scenario
from harness.workers.roles.transactional_producer import TransactionalProducerRoleSpec
from harness.workloads.produce_consume import ProduceConsume

COORDINATOR_LOOKS_EVERY_S = 10.0  # a broker's default interval between checks for timed-out transactions


class TransactionalProduce(ProduceConsume):
    def __init__(self, scenario: Scenario, topic: str, group: str) -> None:
        if scenario.mode is not Mode.EXACTLY_ONCE:
            raise ValueError(f"{scenario.name}: transactional_produce is for exactly_once only")
        super().__init__(scenario, topic, group)

    def more_topics(self) -> Sequence[tuple[str, TopicSettings]]:
        settings = self._scenario.transactions
        return [(f"{self._topic}-{n + 2}", self._scenario.topic) for n in range(settings.topics - 1)]

    def producers(self) -> list[TransactionalProducerRoleSpec]:
        settings = self._scenario.transactions
        timeout_s = int(effective(self._scenario.producers).get("transaction_timeout_ms", 30_000)) / 1000
        own = [
            replace(
                each,
                more_topics=tuple(name for name, _ in self.more_topics()),
                spread_s=settings.spread_s,
                timed_out_share=settings.timed_out_share,
                give_up_s=timeout_s + COORDINATOR_LOOKS_EVERY_S + 2.0,
                id_per_session=settings.id_per_session,
            )
            for each in self.transactional_producers()
        ]
        rivals = [
            replace(
                own[number % len(own)],
                name=f"rival-{number + 1}",
                number=len(own) + number + 1,
                rival_of=own[number % len(own)].name,
                transactions_per_session=3,
                rest_s=2.0,
                seed=own[number % len(own)].seed + 500,
            )
            for number in range(settings.rivals)
        ]
        return [*own, *rivals]


workload_class = TransactionalProduce
