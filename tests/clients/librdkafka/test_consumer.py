"""The ends of partitions, as the consumer asks for them during a failover."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.clients.librdkafka.consumer import ConfluentConsumer


class _Moved:
    """A library that asks the old leader the first few times."""

    def __init__(self, times: int, code: int = KafkaError.NOT_LEADER_FOR_PARTITION) -> None:
        self.left, self.code = times, code

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        self.left -= 1
        if self.left >= 0:
            raise KafkaException(KafkaError(self.code))
        return 3, 9


def _consumer_of(library: Any) -> ConfluentConsumer:
    consumer = object.__new__(ConfluentConsumer)
    consumer._consumer, consumer._topic = library, "t"
    return consumer


def test_bounds_are_asked_again_after_a_failover() -> None:
    """A final reader that gave up here left its run without a verdict."""
    assert _consumer_of(_Moved(2)).bounds(0, 5.0) == (3, 9)


@pytest.mark.parametrize("library", [_Moved(1, KafkaError.TOPIC_AUTHORIZATION_FAILED), _Moved(1000)])
def test_bounds_that_are_not_answered_raise(library: _Moved) -> None:
    with pytest.raises(KafkaException):
        _consumer_of(library).bounds(0, 0.3)
