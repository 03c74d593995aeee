"""Leaders and in-sync sets are recorded when they change, and a broker that does not answer changes nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.contracts import PartitionState
from harness.errors import ClusterError
from harness.kafka import leader_watch
from harness.kafka.leader_watch import LeaderWatch
from harness.kafka.repeatedly import repeatedly
from harness.ledger.events import read_events
from harness.ledger.journal import Ledger

WHOLE = PartitionState("orders", 0, "broker-1", 3, ("broker-1", "broker-2"), ("broker-2", "broker-1"))
BEHIND = replace(WHOLE, in_sync=("broker-1",))
HEADLESS = replace(BEHIND, leader=None)


class FakeCluster:
    """A cluster that gives these answers in turn; an error is raised."""

    def __init__(self, *answers: list[PartitionState] | ClusterError) -> None:
        self._answers, self.asked = list(answers), list[str]()

    def view(self) -> FakeCluster:
        return self

    def partitions(self, topic: str) -> list[PartitionState]:
        self.asked.append(topic)
        answer = self._answers.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return answer


def looked(
    tmp_path: Path, cluster: Any, topics: list[str], looks: int, most: int = leader_watch.MOST_EVENTS
) -> list[dict[str, Any]]:
    """Return the events of so many looks, as a ledger has them."""
    with Ledger(tmp_path, "harness") as book:
        watch = LeaderWatch(cluster, topics, book.events, most)
        for _ in range(looks):
            watch.look()
    events = [event for _, event in read_events(tmp_path / "harness.events")]
    return [e for e in events if e["event"] == "leader"]


def test_the_first_state_and_every_change_are_recorded_once(tmp_path: Path) -> None:
    cluster = FakeCluster([WHOLE], [WHOLE], [BEHIND], [BEHIND], [HEADLESS], [WHOLE])
    events = looked(tmp_path, cluster, ["orders"], 6)
    assert [(e["leader"], e["in_sync"]) for e in events] == [
        ("broker-1", ["broker-1", "broker-2"]), ("broker-1", ["broker-1"]), (None, ["broker-1"]),
        ("broker-1", ["broker-1", "broker-2"]),
    ]  # fmt: skip
    assert {(e["topic"], e["partition"], e["epoch"], *e["replicas"]) for e in events} == {
        (0, 0, 3, "broker-1", "broker-2")
    }


def test_the_order_of_an_in_sync_set_is_no_change(tmp_path: Path) -> None:
    turned = replace(WHOLE, in_sync=("broker-1", "broker-2"))
    assert len(looked(tmp_path, FakeCluster([WHOLE], [turned]), ["orders"], 2)) == 1


def test_each_look_asks_for_one_topic(tmp_path: Path) -> None:
    cluster = FakeCluster([WHOLE], [replace(WHOLE, topic="output")], [BEHIND])
    events = looked(tmp_path, cluster, ["orders", "output"], 3)
    assert cluster.asked == ["orders", "output", "orders"]
    assert [e["topic"] for e in events] == [0, 1, 0]


def test_a_topic_that_changes_all_the_time_does_not_fill_the_ledger(tmp_path: Path) -> None:
    cluster = FakeCluster(*([WHOLE], [BEHIND]) * 5)
    assert len(looked(tmp_path, cluster, ["orders"], 10, most=3)) == 3


def test_a_look_that_fails_is_repeated_and_raises_nothing() -> None:
    looks, enough = [0], threading.Event()

    def look() -> None:
        looks[0] += 1
        if looks[0] == 3:
            enough.set()
        raise ClusterError("no broker answers")

    with repeatedly(look, 0.01, "test"):
        assert enough.wait(10)
    after = looks[0]
    assert not [thread for thread in threading.enumerate() if thread.name == "test"]
    assert looks[0] == after
