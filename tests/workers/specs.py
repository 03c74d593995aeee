"""A specification of each role, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.contracts import Lane, Mode, TopicToRead, WorkerSpec
from harness.ledger.transform import Transform
from harness.scenario import ChurnSettings, Pipeline
from harness.workers.roles.churning_consumer import ChurningConsumerRoleSpec
from harness.workers.roles.consumer import ConsumerRoleSpec
from harness.workers.roles.copier import CopierRoleSpec
from harness.workers.roles.final_reader import FinalReaderSpec
from harness.workers.roles.observer import ObserverRoleSpec
from harness.workers.roles.producer import ProducerRoleSpec
from harness.workers.roles.share_consumer import ShareConsumerRoleSpec
from harness.workers.roles.transactional_producer import TransactionalProducerRoleSpec

SPECS: Mapping[str, Callable[[str], WorkerSpec]] = {
    "producer": lambda name: ProducerRoleSpec(
        name=name, mode=Mode.IDEMPOTENT, lane=Lane.PRODUCE, number=1, topic="t", partitions=1,
        payload_bytes=128, seed=1, records_per_s=1.0, flush_limit_s=1.0,
    ),
    "consumer": lambda name: ConsumerRoleSpec(
        name=name, mode=Mode.IDEMPOTENT, lane=Lane.CONSUME, topic="t", group="g", isolation="read_committed"
    ),
    "transactional_producer": lambda name: TransactionalProducerRoleSpec(
        name=name, mode=Mode.EXACTLY_ONCE, lane=Lane.PRODUCE, number=1, topic="t", partitions=1, payload_bytes=128,
        seed=1, records_per_s=1.0, records_per_transaction=1, aborted_share=0.0, end_limit_s=1.0,
    ),
    "churning_consumer": lambda name: ChurningConsumerRoleSpec(
        name=name, mode=Mode.IDEMPOTENT, lane=Lane.CONSUME, topic="t", group="g", isolation="read_committed",
        churn=ChurnSettings(), seed=1,
    ),
    "share_consumer": lambda name: ShareConsumerRoleSpec(
        name=name, mode=Mode.IDEMPOTENT, lane=Lane.CONSUME, topic="t", group="g", isolation="read_committed"
    ),
    "copier": lambda name: CopierRoleSpec(
        name=name, mode=Mode.EXACTLY_ONCE, lane=Lane.CONSUME, number=1, topic="t", partitions=1, payload_bytes=128,
        seed=1, group="g", isolation="read_committed", kind=Pipeline.OFFSETS_IN_TRANSACTION, transform=Transform(),
        inputs_per_transaction=1, aborted_share=0.0, end_limit_s=1.0,
    ),
    "observer": lambda name: ObserverRoleSpec(
        name=name, mode=Mode.IDEMPOTENT, lane=Lane.CONSUME, topics=(TopicToRead("t", 3),), isolation="read_committed"
    ),
    "final_reader": lambda name: FinalReaderSpec(
        name=name, mode=Mode.IDEMPOTENT, lane=Lane.CONTROL, topics=(TopicToRead("t", 3),), limit_s=1.0
    ),
}  # fmt: skip
