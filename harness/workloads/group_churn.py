"""Producers send to one topic; the members of the group that reads it leave and join all the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness.workloads.produce_consume import ProduceConsume


class GroupChurn(ProduceConsume):
    def _consumers(self) -> list[Mapping[str, Any]]:
        churn = asdict(self._scenario.churn)
        seed = self._scenario.seed * 1000 + 500
        return [
            {**each, "role": "churning_consumer", "churn": churn, "seed": seed + number}
            for number, each in enumerate(super()._consumers())
        ]


workload_class = GroupChurn
