"""Compacted topics are refused: they delete acked records by design (TRUST T8)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.errors import RunRefusedError
from harness.kafka import topics
from tests.fake_arena import make_arena


class FakeAdmin:
    policies: dict[str, str]
    refuses = False

    def __init__(self, settings: Any) -> None: ...

    def describe_configs(self, asked: Sequence[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        answers = {}
        for resource in asked:
            answers[resource] = Future[Any]()
            if self.refuses:
                answers[resource].set_exception(
                    KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))
                )
            else:
                policy = self.policies.get(resource.name)
                config = {} if policy is None else {"cleanup.policy": SimpleNamespace(value=policy)}
                answers[resource].set_result(config)
        return answers


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> type[FakeAdmin]:
    monkeypatch.setattr(topics, "AdminClient", FakeAdmin)
    monkeypatch.setattr(FakeAdmin, "policies", {"orders": "delete"}, raising=False)
    return FakeAdmin


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_default_of_the_brokers_that_compacts_is_refused_in_one_line(
    brokers: type[FakeAdmin], policy: str
) -> None:
    brokers.policies = {"orders": "delete", "orders-output": policy}
    with pytest.raises(RunRefusedError) as refused:
        topics.refuse_compaction(make_arena().cluster, ["orders", "orders-output"])
    text = str(refused.value)
    assert "\n" not in text
    assert text.startswith(f"topic orders-output: its effective cleanup.policy is {policy},")
    assert "set log.cleanup.policy=delete" in text


def test_topics_that_delete_are_accepted(brokers: type[FakeAdmin]) -> None:
    assert topics.refuse_compaction(make_arena().cluster, ["orders"]) == []


def test_brokers_that_do_not_answer_are_named(
    brokers: type[FakeAdmin], monkeypatch: pytest.MonkeyPatch
) -> None:
    [silent] = topics.refuse_compaction(make_arena().cluster, ["unheard-of"])
    assert silent.startswith("whether unheard-of is compacted is not checked: ")
    monkeypatch.setattr(FakeAdmin, "refuses", True)
    [refusing] = topics.refuse_compaction(make_arena().cluster, ["orders"])
    assert "do not answer DescribeConfigs" in refusing
