"""A pipeline, consume-transform-produce, as real applications run it: for every mode, correct and incorrect ones.

Producers fill the input, a group of copiers makes the output. Each output has the id and the position of its input, so that
every effect can be traced back: exactly-once means that each input has its effects once.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Lane, TopicSettings, WorkerSpec
from harness.ledger.transform import Transform, dead_letters_of, output_of
from harness.scenario import Scenario
from harness.workers.roles.copier import CopierRoleSpec
from harness.workloads.produce_consume import ProduceConsume


class TransactionalCopy:
    def __init__(self, scenario: Scenario, topic: str, group: str) -> None:
        self._scenario, self._topic, self._group = scenario, topic, group
        self._input = ProduceConsume(scenario, topic, group)

    def roles(self) -> Sequence[WorkerSpec]:
        return [*self._copiers(), *self._input.producers()]

    def more_topics(self) -> Sequence[tuple[str, TopicSettings]]:
        settings = self._scenario.pipeline.output
        return [(output_of(self._topic), settings), (dead_letters_of(self._topic), settings)]

    def transform(self) -> Transform | None:
        return self._scenario.pipeline.transform

    def _copiers(self) -> list[CopierRoleSpec]:
        scenario, settings = self._scenario, self._scenario.pipeline
        first = len(self._input.producers()) + 1  # sessions are numbered by worker
        return [
            CopierRoleSpec(
                name=f"copier-{number + 1}",
                number=first + number,
                lane=Lane.CONSUME,  # reading and writing through one lane: an application is cut off as a whole
                topic=self._topic,
                more_topics=tuple(name for name, _ in self.more_topics()),
                group=self._group,
                mode=scenario.mode,
                kind=settings.kind,
                isolation=scenario.consumers.isolation,
                transform=settings.transform,
                inputs_per_transaction=settings.inputs_per_transaction,
                aborted_share=settings.aborted_share,
                end_limit_s=scenario.transactions.end_limit_s,
                partitions=settings.output.partitions,
                payload_bytes=scenario.producers.payload_bytes,
                seed=scenario.seed * 1000 + first + number,
                producer=settings.producer,
                consumer=scenario.consumers.options().updated(settings.consumer),
            )
            for number in range(settings.members)
        ]


workload_class = TransactionalCopy
