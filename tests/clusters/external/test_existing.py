"""An existing cluster, without one: the prefix, options that belong together, and scenarios that it cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cluster_options import Choice
from harness.clusters.external import created_objects
from harness.clusters.external.commanded_powers import commanded
from harness.clusters.external.power_commands import Commands, Powers
from harness.clusters.links.mesh import Member
from harness.contracts import (
    Mode,
    Node,
    Shared,
)
from harness.errors import UsageError
from harness.injector import why_not_applicable
from harness.kafka import connection
from harness.kafka.admin import Administrator
from suites.scenarios import matrix
from tests.fake_arena import FakeCluster, make_arena


@dataclass
class SharedCluster(FakeCluster):
    prefix: str = "ours-"


def test_nothing_outside_the_prefix_is_touched() -> None:
    arena = make_arena()
    shared = SharedCluster(arena.cluster.brokers, arena.cluster.replicas)
    assert isinstance(shared, Shared)
    assert connection.prefix_of(shared) == "ours-"
    assert connection.ours(shared, "ours-topic") == "ours-topic"
    for act in (lambda: connection.ours(shared, "orders"), lambda: Administrator(shared, "orders")):
        with pytest.raises(UsageError, match=r"orders: onceproof only touches names with the prefix ours-"):
            act()
    assert connection.ours(arena.cluster, "orders") == "orders"
    assert connection.prefix_of(arena.cluster) == "onceproof-"


def test_a_record_outlives_a_crash_and_names_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    record = created_objects.CreatedTopics("a:1,b:2")
    record.add("onceproof-one")
    record.add("onceproof-two")
    assert created_objects.alive() == {"onceproof-one", "onceproof-two"}
    assert created_objects.crashed("b:2") == {}, "its session is alive"
    monkeypatch.setattr("harness.processes.child_process.Identity.alive", lambda self: False)
    assert list(created_objects.crashed("b:2,c:3").values()) == [["onceproof-one", "onceproof-two"]]
    assert created_objects.crashed("c:3") == {}
    record.remove()
    assert created_objects.crashed("a:1") == {}


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        (Choice(cluster="existing"), r"needs --bootstrap HOST:PORT"),
        (Choice(cluster="existing", bootstrap="nohost"), r"--bootstrap nohost: HOST:PORT"),
        (Choice(cluster="existing", bootstrap="a:1", kafka="3.9.2"), r"--kafka and --combined"),
        (Choice(cluster="existing", bootstrap="a:1", prefix="a b"), r"--prefix 'a b': must be 1 to 60"),
        (
            Choice(cluster="existing", bootstrap="a:1", powers="nowhere.toml"),
            r"--powers nowhere\.toml cannot",
        ),
        (
            Choice(cluster="existing", bootstrap="a:1", client_config="nowhere"),
            r"--client-config .*nowhere cannot",
        ),
        (Choice(cluster="existing", bootstrap="a:1", security="ssl"), r"--security is for --cluster local"),
        (Choice(bootstrap="a:1"), r"--bootstrap is for --cluster existing, not local"),
        (Choice(keep_topics=True), r"--keep-topics is for --cluster existing, not local"),
    ],
)
def test_conflicting_options_are_refused(tmp_path: Path, choice: Choice, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        choice.build(tmp_path)


def test_a_fault_without_a_suitable_node_is_not_applicable() -> None:
    class Powerless(FakeCluster):
        def nodes(self) -> list[Node]:
            return [
                commanded(
                    Member("broker-1", 1, True, True), ("h", 1), Powers(Path("p")).of("broker-1", {}), print
                )
            ]

    cluster = Powerless(make_arena().cluster.brokers, {})
    reasons = [why_not_applicable(scenario, cluster) for scenario in matrix.QUICK]
    assert all(reason and "kill on leader needs a power that no node" in reason for reason in reasons)
    assert why_not_applicable(matrix.HAZARDS[-1], cluster) is None, "it has no fault"


# TRUST T4: if the leader cannot be stopped first, whether the kill loses records would be luck.
def test_losses_are_not_required_of_nodes_that_cannot_be_stopped() -> None:
    class Killing(FakeCluster):
        lines: Mapping[str, tuple[str, ...]] = {}

        def nodes(self) -> list[Node]:
            return [commanded(Member("broker-1", 1, True, True), ("h", 1), Commands(self.lines), print)]

    cluster = Killing(make_arena().cluster.brokers, {})
    at_most_once, at_least_once = (
        matrix.crossed(mode, "kill-leader") for mode in (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE)
    )
    cluster.lines = dict.fromkeys(("kill", "restart"), ("true",))
    assert "(PausableAndKillable)" in (why_not_applicable(at_most_once, cluster) or "")
    assert why_not_applicable(at_least_once, cluster) is None
    cluster.lines = dict.fromkeys(("kill", "restart", "pause", "resume"), ("true",))
    assert why_not_applicable(at_most_once, cluster) is None
