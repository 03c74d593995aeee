"""The plain workload, for every mode: producers send to one topic, a group reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.contracts import Lane, Mode, TopicSettings
from harness.ledger.transform import Transform
from harness.scenario import Scenario


class ProduceConsume:
    """Several producers, keyed and keyless, transactional in exactly-once; one group of several members."""

    def __init__(self, scenario: Scenario, topic: str, group: str) -> None:
        self._scenario, self._topic, self._group = scenario, topic, group

    def roles(self) -> Sequence[Mapping[str, Any]]:
        """Return one specification for each worker process; `lane` chooses its links."""
        return [*self._consumers(), *self.producers()]

    def more_topics(self) -> Sequence[tuple[str, TopicSettings]]:
        return ()

    def transform(self) -> Transform | None:
        return None

    def producers(self) -> list[Mapping[str, Any]]:
        scenario, settings = self._scenario, self._scenario.producers
        role = "transactional_producer" if scenario.mode is Mode.EXACTLY_ONCE else "producer"
        return [
            {
                "role": role,
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
                "records_per_transaction": settings.records_per_transaction,
                "aborted_share": settings.aborted_share,
                "end_limit_s": scenario.transactions.end_limit_s,
                "flush_limit_s": scenario.timings.flush_limit_s,
                "seed": scenario.seed * 1000 + number,
                "extra": dict(settings.extra),
            }
            for number in range(settings.keyed + settings.keyless)
        ]

    def _consumers(self) -> list[Mapping[str, Any]]:
        scenario, settings = self._scenario, self._scenario.consumers
        return [
            {
                "role": "consumer",
                "name": f"consumer-{number + 1}",
                "number": number + 1,
                "lane": Lane.CONSUME,
                "topic": self._topic,
                "group": self._group,
                "mode": scenario.mode,
                "isolation": settings.isolation,
                "auto_commit": settings.auto_commit,
                "extra": {
                    **({"group.instance.id": f"consumer-{number + 1}"} if settings.static else {}),
                    **settings.extra,
                },
            }
            for number in range(settings.members)
        ]


workload_class = ProduceConsume
