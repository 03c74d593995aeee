"""Transactions of one producer whose requests can be held without affecting any other client.

As transactional_produce, with a bystander: a keyed producer that uses the lane of the readers. Faults on the requests of the
first producer must not affect the bystander. It has keys, since only the order of keyed records is checked.
"""

from __future__ import annotations

from dataclasses import replace

from harness.contracts import Lane
from harness.workers.roles.transactional_producer import TransactionalProducerRoleSpec
from harness.workloads.transactional_produce import TransactionalProduce


class LateEnd(TransactionalProduce):
    def producers(self) -> list[TransactionalProducerRoleSpec]:
        own = super().producers()
        bystander = replace(
            own[0],
            name="bystander-1",
            number=len(own) + 1,
            lane=Lane.CONSUME,
            keyed=True,
            seed=own[0].seed + 500,
        )
        return [*own, bystander]


workload_class = LateEnd
