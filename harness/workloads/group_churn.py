"""Producers send to one topic; the members of the group that reads it leave and join all the time."""

from __future__ import annotations

from harness.workers.roles.churning_consumer import ChurningConsumerRoleSpec
from harness.workloads.produce_consume import ProduceConsume


class GroupChurn(ProduceConsume):
    def consumers(self) -> list[ChurningConsumerRoleSpec]:
        churn, seed = self._scenario.churn, self._scenario.seed * 1000 + 500
        return [
            ChurningConsumerRoleSpec(**vars(each), churn=churn, seed=seed + number)
            for number, each in enumerate(self.plain_consumers())
        ]


workload_class = GroupChurn
