"""A workload: the roles of a run's workers, and the counters that each worker shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness.contracts.cluster import TopicSettings

if TYPE_CHECKING:
    from harness.ledger.transform import Transform


@dataclass(frozen=True)
class Counters:
    attempted: int = 0
    acked: int = 0
    failed: int = 0  # rejected or unknown
    delivered: int = 0
    committed: int = 0
    sessions: int = 0

    def plus(self, **more: int) -> Counters:
        return Counters(**{name: value + more.get(name, 0) for name, value in vars(self).items()})


class Workload(Protocol):
    def roles(self) -> Sequence[Mapping[str, Any]]: ...  # one specification for each worker process
    def more_topics(
        self,
    ) -> Sequence[tuple[str, TopicSettings]]: ...  # besides the topic that the group reads
    def transform(self) -> Transform | None: ...  # of a pipeline's input to its output; None: not a pipeline
