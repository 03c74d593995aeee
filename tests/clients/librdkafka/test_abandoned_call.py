"""Calls that may never return."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from harness.clients.confluent import GRACE_S, ConfluentProducer
from harness.clients.librdkafka.abandoned_call import call_or_give_up
from harness.contracts import Consumer, Mode, Outcome, ProducerSpec


def test_a_call_that_returns_is_waited_for() -> None:
    seen: list[int] = []
    assert call_or_give_up(lambda: seen.append(1), 5.0)
    assert seen == [1]


def test_an_exception_of_the_call_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        call_or_give_up(lambda: 1 // 0, 5.0)


def test_a_call_that_does_not_return_is_given_up_and_blocks_nothing() -> None:
    never = threading.Event()
    assert not call_or_give_up(never.wait, 0.05)
    (left,) = (thread for thread in threading.enumerate() if thread.name == "onceproof-call")
    assert left.daemon, "the process can end without it"
    never.set()
    left.join(5.0)


class NeverReturns:
    """A producer of the library that ignores its limit."""

    def __init__(self) -> None:
        self.returns = threading.Event()

    def send_offsets_to_transaction(self, offsets: object, member: object, timeout_s: float) -> None:
        self.returns.wait(10.0)


class Member:
    def offsets_for_transaction(self, positions: object) -> tuple[object, object]:
        return [], None


def test_offsets_that_the_library_never_answers_for_are_unknown() -> None:
    producer = ConfluentProducer(ProducerSpec("127.0.0.1:1", "t", Mode.IDEMPOTENT))
    library = NeverReturns()
    producer._producer = library  # type: ignore[assignment]
    assert producer.send_offsets({0: 1}, cast(Consumer, Member()), 0.05) is Outcome.UNKNOWN
    assert producer.trouble == (
        f"send_offsets_to_transaction has not returned after {0.05 + GRACE_S:g} s, its limit is 0.05"
    )
    library.returns.set()
