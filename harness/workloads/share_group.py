"""Producers send to one topic; a share group (KIP-932) reads it: its members get records one by one, not partitions.

The group is drained when every record of the topic is accepted. Such a group has no positions, owners or order, so nothing is
asked about those.
"""

from __future__ import annotations

from harness.contracts import Lane, Mode
from harness.scenario import Scenario
from harness.workers.roles.share_consumer import ShareConsumerRoleSpec
from harness.workloads.produce_consume import ProduceConsume


class ShareGroup(ProduceConsume):
    def __init__(self, scenario: Scenario, topic: str, group: str) -> None:
        if scenario.mode is Mode.EXACTLY_ONCE:
            raise ValueError(
                f"{scenario.name}: share_group has no exactly_once, since acceptance is in no transaction"
            )
        super().__init__(scenario, topic, group)

    def consumers(self) -> list[ShareConsumerRoleSpec]:
        return [
            ShareConsumerRoleSpec(
                name=f"consumer-{number + 1}",
                lane=Lane.CONSUME,
                topic=self._topic,
                group=self._group,
                mode=self._scenario.mode,
                isolation=self._scenario.consumers.isolation,
            )
            for number in range(self._scenario.consumers.members)
        ]


workload_class = ShareGroup
