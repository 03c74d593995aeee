"""Transactions of one producer whose requests can be held without touching those of anybody else.

As transactional_produce, with a bystander: a producer with keys that talks through the lane of the readers. What is done to
the requests of the one must not show in the other, and without keys nobody could say that their order was kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Lane
from harness.workloads.transactional_produce import TransactionalProduce


class LateEnd(TransactionalProduce):
    def producers(self) -> list[Mapping[str, Any]]:
        own = super().producers()
        bystander = {
            **own[0],
            "name": "bystander-1",
            "number": len(own) + 1,
            "lane": Lane.CONSUME,
            "keyed": True,
            "seed": int(own[0]["seed"]) + 500,
        }
        return [*own, bystander]


workload_class = LateEnd
