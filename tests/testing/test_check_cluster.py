"""The check of a kind of cluster passes for every kind, and fails for one that breaks the contract."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.cluster_options import Choice
from harness.clusters.memory import MemoryCluster
from harness.contracts import ClusterDescription
from harness.testing.check_cluster import check_kind, check_started
from tests.fake_arena import FakeCluster, make_arena

NEEDS: Mapping[str, Mapping[str, Any]] = {
    "existing": {"bootstrap": "127.0.0.1:9"},
    "zookeeper": {"kafka": "3.9.2"},
}


@pytest.mark.parametrize("kind", registry.names("cluster"))
def test_every_kind_makes_a_cluster_from_the_options(kind: str, tmp_path: Path) -> None:
    check_kind(kind, Choice(cluster=kind, **NEEDS.get(kind, {})), tmp_path / "cluster")


def test_a_kind_that_does_not_name_itself_or_leaves_a_folder_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nameless(MemoryCluster):
        def describe(self) -> ClusterDescription:
            return ClusterDescription("")

    class Hasty(MemoryCluster):
        def __init__(self, folder: Path, *, brokers: int = 3) -> None:
            super().__init__(folder, brokers=brokers)
            folder.mkdir(parents=True)

    for number, wrong in enumerate((Nameless, Hasty)):
        monkeypatch.setattr("harness.clusters.memory.cluster_class", wrong)
        with pytest.raises(AssertionError):
            check_kind("memory", Choice(cluster="memory"), tmp_path / str(number))


class Described(FakeCluster):
    says = ClusterDescription("memory", {"ready": 0.1})

    def describe(self) -> ClusterDescription:
        return self.says


@pytest.mark.parametrize(
    "wrong",
    [
        ClusterDescription("unknown", {"ready": 0.1}),
        ClusterDescription("memory", {"brokers_answer": 0.1}),
        ClusterDescription("memory", {"ready": 0.1, "brokers_answer": 0.1}),
    ],
)
def test_a_description_without_a_kind_or_a_time_fails(wrong: ClusterDescription) -> None:
    there = make_arena().cluster
    cluster = Described(there.brokers, there.replicas)
    check_started(cluster)
    cluster.says = wrong
    with pytest.raises(AssertionError):
        check_started(cluster)


def test_a_description_leaves_out_what_is_empty() -> None:
    whole = ClusterDescription(
        "local", {"ready": 1.0}, "4.3.1", ["EndTxn"], ["no transactions"], more={"java": None}
    )
    assert json.loads(json.dumps(whole.as_data())) == {
        "kind": "local",
        "kafka_version": "4.3.1",
        "java": None,
        "lacking": ["EndTxn"],
        "not_checked": ["no transactions"],
        "steps_s": {"ready": 1.0},
    }
    assert ClusterDescription("local").as_data() == {"kind": "local"}
