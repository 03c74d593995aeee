"""The pipeline of transactional_copy with poison in its input: inputs that cannot be processed go to the dead letters.

A dead letter is written in the same transaction as the other effects, with the id and position of its input, so exactly-once
applies to it as to any other effect.
"""

from __future__ import annotations

from harness.scenario import Scenario
from harness.workloads.transactional_copy import TransactionalCopy


class DeadLetters(TransactionalCopy):
    def __init__(self, scenario: Scenario, topic: str, group: str) -> None:
        if not scenario.pipeline.poison_share:
            raise ValueError(f"{scenario.name}: dead_letters needs PipelineSettings(poison_share=…) above 0")
        super().__init__(scenario, topic, group)


workload_class = DeadLetters
