"""librdkafka 5511 and 5456: who sends offsets waits for ever when both coordinators were one broker, and it is gone.

The story is in docs/findings/librdkafka-5511.md. Once the library is mended, the first test fails: then the setting in
harness/clients/librdkafka/translation.py and harness/clients/librdkafka/abandoned_call.py, which keep our pipelines from it, have had their day.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from harness.clients.librdkafka.translation import TRANSACTIONAL
from harness.contracts import Cluster, Killable, Lane, Node, TopicSettings
from harness.processes import child_process
from harness.waiting import wait_until
from suites.support.lost_coordinator import COMMITTED, GAVE_UP, SEND_OFFSETS_LIMIT_S, SENDS_OFFSETS
from suites.support.sessions import started_cluster

pytestmark = pytest.mark.conformance

INPUT, OUTPUT, ID = (
    "onceproof-lost-coordinator",
    "onceproof-lost-coordinator-output",
    "onceproof-lost-coordinator",
)
GOES_ON_LIMIT_S = 40.0


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with started_cluster(request.config) as started:
        for topic in (INPUT, OUTPUT):
            started.create_topic(topic, TopicSettings())
        yield started


def group_of_one_coordinator(cluster: Cluster) -> tuple[str, Node]:
    """A group whose coordinator is that of the transactions, too; which broker it is."""
    view = cluster.view()
    of_transactions = wait_until(
        lambda: view.coordinator(ID, transaction=True), 30.0, f"{ID}: no coordinator"
    )
    wait_until(lambda: view.coordinator("onceproof-0", transaction=False), 30.0, "no group has a coordinator")
    group = next(
        name
        for name in (f"onceproof-{number}" for number in count())
        if view.coordinator(name, transaction=False) == of_transactions
    )
    (node,) = (node for node in cluster.nodes() if node.name == of_transactions)
    return group, node


@contextmanager
def application(cluster: Cluster, group: str, told: Path, *settings: float) -> Iterator[None]:
    """Runs as a process of its own: nothing but its end gets it out of the call. `settings`: as it is given them."""
    words = [cluster.bootstrap_servers(Lane.CONSUME), INPUT, OUTPUT, group, ID, *map(str, settings)]
    process = child_process.spawn([sys.executable, "-m", "suites.support.lost_coordinator", *words], log=told)
    try:
        yield
    finally:
        child_process.end(process)


def steps(told: Path) -> list[str]:
    if not told.exists():
        return []
    return [line for line in told.read_text().splitlines() if line.startswith((SENDS_OFFSETS, COMMITTED))]


def committed(told: Path) -> int:
    return sum(step.startswith(COMMITTED) for step in steps(told))


def test_without_the_cure_it_waits_for_ever(cluster: Cluster, tmp_path: Path) -> None:
    group, coordinator = group_of_one_coordinator(cluster)
    assert isinstance(coordinator, Killable)
    told = tmp_path / "told"
    with application(cluster, group, told, 0):
        wait_until(lambda: committed(told) >= 10, 30.0, "it does not work at all")
        coordinator.kill()
        time.sleep(SEND_OFFSETS_LIMIT_S)  # a transaction may have been past it
        before = steps(told)
        time.sleep(4 * SEND_OFFSETS_LIMIT_S)
        assert steps(told) == before, "it goes on: is the library mended?"
        assert before[-1].startswith(SENDS_OFFSETS), before[-1]
        coordinator.restart()
        time.sleep(2 * SEND_OFFSETS_LIMIT_S)
        assert steps(told) == before, "it goes on when the broker is back"


def test_with_idle_connections_closed_it_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    group, coordinator = group_of_one_coordinator(cluster)
    assert isinstance(coordinator, Killable)
    told = tmp_path / "told"
    with application(cluster, group, told, TRANSACTIONAL["connections.max.idle.ms"]):
        wait_until(lambda: committed(told) >= 10, 30.0, "it does not work at all")
        coordinator.kill()
        before = committed(told)
        wait_until(lambda: committed(told) >= before + 10, GOES_ON_LIMIT_S, "it does not go on")


def test_who_gives_the_call_up_goes_on_with_a_new_producer(cluster: Cluster, tmp_path: Path) -> None:
    group, coordinator = group_of_one_coordinator(cluster)
    assert isinstance(coordinator, Killable)
    told = tmp_path / "told"
    with application(cluster, group, told, 0, SEND_OFFSETS_LIMIT_S + 1.0):
        wait_until(lambda: committed(told) >= 10, 30.0, "it does not work at all")
        coordinator.kill()
        before = committed(told)
        wait_until(lambda: GAVE_UP in told.read_text(), GOES_ON_LIMIT_S, "it does not give up")
        wait_until(lambda: committed(told) >= before + 10, GOES_ON_LIMIT_S, "it does not go on")
