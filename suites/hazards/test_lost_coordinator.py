"""librdkafka 5511 and 5456: sending offsets never returns if one broker was both coordinators and is gone.

See docs/findings/librdkafka-5511.md. When the library is fixed, the first test fails: then remove the workarounds, the setting
in harness/clients/librdkafka/translation.py and harness/clients/librdkafka/abandoned_call.py.
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
    """Return a group with the same coordinator as the transactional id, and that broker."""
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
def application(cluster: Cluster, group: str, log: Path, *settings: float) -> Iterator[None]:
    """Run the application in a separate process: only its end gets it out of the call. `settings` are its arguments."""
    words = [cluster.bootstrap_servers(Lane.CONSUME), INPUT, OUTPUT, group, ID, *map(str, settings)]
    process = child_process.spawn([sys.executable, "-m", "suites.support.lost_coordinator", *words], log=log)
    try:
        yield
    finally:
        child_process.end(process)


def steps(log: Path) -> list[str]:
    if not log.exists():
        return []
    return [line for line in log.read_text().splitlines() if line.startswith((SENDS_OFFSETS, COMMITTED))]


def committed(log: Path) -> int:
    return sum(step.startswith(COMMITTED) for step in steps(log))


def test_without_the_workaround_sending_offsets_never_returns(cluster: Cluster, tmp_path: Path) -> None:
    group, coordinator = group_of_one_coordinator(cluster)
    assert isinstance(coordinator, Killable)
    log = tmp_path / "log"
    with application(cluster, group, log, 0):
        wait_until(lambda: committed(log) >= 10, 30.0, "it does not work at all")
        coordinator.kill()
        time.sleep(SEND_OFFSETS_LIMIT_S)  # a transaction may already have sent its offsets
        before = steps(log)
        time.sleep(4 * SEND_OFFSETS_LIMIT_S)
        assert steps(log) == before, "it goes on: is the library fixed?"
        assert before[-1].startswith(SENDS_OFFSETS), before[-1]
        coordinator.restart()
        time.sleep(2 * SEND_OFFSETS_LIMIT_S)
        assert steps(log) == before, "it goes on when the broker is back"


def test_closing_idle_connections_lets_it_go_on(cluster: Cluster, tmp_path: Path) -> None:
    group, coordinator = group_of_one_coordinator(cluster)
    assert isinstance(coordinator, Killable)
    log = tmp_path / "log"
    with application(cluster, group, log, TRANSACTIONAL["connections.max.idle.ms"]):
        wait_until(lambda: committed(log) >= 10, 30.0, "it does not work at all")
        coordinator.kill()
        before = committed(log)
        wait_until(lambda: committed(log) >= before + 10, GOES_ON_LIMIT_S, "it does not go on")


def test_an_application_that_gives_up_goes_on_with_a_new_producer(cluster: Cluster, tmp_path: Path) -> None:
    group, coordinator = group_of_one_coordinator(cluster)
    assert isinstance(coordinator, Killable)
    log = tmp_path / "log"
    with application(cluster, group, log, 0, SEND_OFFSETS_LIMIT_S + 1.0):
        wait_until(lambda: committed(log) >= 10, 30.0, "it does not work at all")
        coordinator.kill()
        before = committed(log)
        wait_until(lambda: GAVE_UP in log.read_text(), GOES_ON_LIMIT_S, "it does not give up")
        wait_until(lambda: committed(log) >= before + 10, GOES_ON_LIMIT_S, "it does not go on")
