"""Changes of topics that a busy controller answers late."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.errors import ClusterError
from harness.kafka import topics

LATE, DONE, REFUSED = KafkaError._TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.POLICY_VIOLATION


def answers(*codes: int | None) -> Callable[[], Future[Any]]:
    """Return a request that is answered with these errors in sequence; None: done."""
    left = list(codes)

    def ask() -> Future[Any]:
        future: Future[Any] = Future()
        code = left.pop(0)
        if code is None:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(code)))
        return future

    return ask


@pytest.mark.parametrize("codes", [(None,), (LATE, None), (LATE, DONE), (LATE, LATE, DONE)], ids=str)
def test_a_late_answer_is_asked_for_again(codes: tuple[int | None, ...]) -> None:
    ask = answers(*codes)
    topics._change(ask, done=DONE, otherwise="topic t cannot be deleted")
    with pytest.raises(IndexError):
        ask()  # all answers were taken


@pytest.mark.parametrize("codes", [(DONE,), (REFUSED,), (LATE, REFUSED)], ids=str)
def test_a_refusal_is_raised_at_once(codes: tuple[int, ...]) -> None:
    with pytest.raises(ClusterError, match="topic t cannot be deleted"):
        topics._change(answers(*codes), done=DONE, otherwise="topic t cannot be deleted")


def test_a_topic_that_is_gone_is_deleted() -> None:
    topics._change(answers(DONE), done=DONE, asked_before=True, otherwise="topic t cannot be deleted")
    with pytest.raises(ClusterError, match="topic t cannot be deleted"):
        topics._change(answers(REFUSED), done=DONE, asked_before=True, otherwise="topic t cannot be deleted")


def test_a_controller_that_never_answers_is_given_up() -> None:
    with pytest.raises(ClusterError, match="topic t cannot be deleted"):
        topics._change(answers(LATE, LATE), done=DONE, otherwise="topic t cannot be deleted", limit_s=0.0)


def test_a_client_that_reports_nothing_is_asked_again_and_then_given_up() -> None:
    """On a stalled machine the wait for the client ends before the client's own."""
    change = partial(topics._change, done=DONE, otherwise="topic t cannot be deleted", answer_s=0.01)
    silent: Future[Any] = Future()
    done: Future[Any] = Future()
    done.set_result(None)
    left = [silent, done]
    change(lambda: left.pop(0))
    assert left == []
    with pytest.raises(ClusterError, match="topic t cannot be deleted: no answer within 0 s"):
        change(lambda: silent, limit_s=0.0)
