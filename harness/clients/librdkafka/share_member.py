"""A member of a share group (KIP-932): records are given out one by one, and stay the group's until they are accepted."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException

from harness.clients.librdkafka.records import GETTERS
from harness.clients.librdkafka.translation import COMMON, described
from harness.clients.shared.records import delivery_rows, each
from harness.contracts import Batch, ConsumerSpec, Outcome

ASK_S = 10.0


class LibrdkafkaShareMember:
    """It accepts records explicitly. What it was given and did not accept goes to another member, or to itself again."""

    def __init__(self, spec: ConsumerSpec) -> None:
        from confluent_kafka import ShareConsumer  # older libraries do not have it

        self._spec = spec
        _begin_at_the_start(spec)
        self._given: list[Any] = []
        self._consumer = ShareConsumer(
            {
                **COMMON,
                "bootstrap.servers": spec.bootstrap,
                **spec.security,
                "group.id": spec.group,
                "share.acknowledgement.mode": "explicit",
            }
        )
        self._consumer.subscribe([spec.topic])

    def poll(self, timeout_s: float) -> Batch:
        errors = []
        try:
            polled = list(self._consumer.poll(timeout_s))
        except KafkaException as problem:
            polled, errors = [], [described(problem.args[0])]
        self._given = [record for record in polled if record.error() is None]
        errors += [described(error) for record in polled if (error := record.error()) is not None]
        values = each(lambda record: record.value(), self._given)
        return Batch(delivery_rows(self._given, values, self._spec, GETTERS), {}, {}, errors)

    def accept(self, timeout_s: float) -> tuple[Outcome, str]:
        for record in self._given:
            self._consumer.acknowledge(record)
        self._given = []
        try:
            refused = [error for error in self._consumer.commit_sync(timeout_s).values() if error is not None]
        except KafkaException as problem:
            refused = [problem]
        if not refused:
            return Outcome.ACKED, ""
        return Outcome.UNKNOWN, described(refused[0].args[0])

    def close(self) -> None:
        self._consumer.close()


def _begin_at_the_start(spec: ConsumerSpec) -> None:
    """Make the group begin with the oldest record. This is a setting of the group on the brokers; the default is the end."""
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # libraries before 2.2 do not have them
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, spec.group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": spec.bootstrap, **spec.security})
    admin.incremental_alter_configs([group], request_timeout=ASK_S)[group].result(ASK_S * 2)
