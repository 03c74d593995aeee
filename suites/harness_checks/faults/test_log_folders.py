"""Brokers with two log folders of which one breaks: they continue with the other, on a real cluster, by every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from faults.broken_disk import BrokenDisk
from harness.clusters.base.options import Options
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalBroker
from harness.contracts import Fault, TopicSettings
from harness.errors import FaultError
from harness.targets import leader_of
from harness.testing.check_fault import check_fault
from harness.testing.leftovers import mounts_of, processes_of
from suites.support.arena import TOPIC, BareArena

pytestmark = pytest.mark.conformance


@dataclass(frozen=True)
class TwoFolders(BareArena):
    way: str = ""  # of breaking its disks


@pytest.fixture(scope="module")
def two_folders(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TwoFolders]:
    folder, way = tmp_path_factory.mktemp("cluster"), request.param
    options = Options(fuse=way == "fuse", byteman=True, log_folders=2)
    with LocalCluster(folder, controllers=1, options=options) as cluster:
        cluster.create_topic(TOPIC, TopicSettings(partitions=6))
        yield TwoFolders(cluster, way=way)
        assert mounts_of(folder) == []
    assert processes_of(folder) == []


@pytest.mark.parametrize("two_folders", ["byteman", "fuse"], indirect=True)
@pytest.mark.parametrize(
    "fault", [BrokenDisk(folder=2), BrokenDisk(read_only=True, folder=2)], ids=lambda each: str(each)
)
def test_a_broker_continues_without_one_of_its_log_folders(
    two_folders: TwoFolders, fault: Fault, record_property: Callable[[str, object], None]
) -> None:
    (broker,) = leader_of().pick(two_folders)
    assert isinstance(broker, LocalBroker)
    replicas = two_folders.cluster.replica_folders
    places = {number: replicas(TOPIC, number)[broker.name].parent.name for number in range(6)}
    assert set(places.values()) == {"1", "2"}, "the broker spreads its partitions"
    pid = broker.pid
    with fault.hold(two_folders, [broker]) as bite:
        assert bite.bit, bite.proof
        print(f"\n{bite.proof} {dict(bite.measured)}")
        assert broker.pid == pid, "the same process continues"
        for state in two_folders.cluster.view().partitions(TOPIC):
            assert (broker.name in state.in_sync) == (places[state.partition] == "1")
            assert state.leader is not None
    assert fault.healed(two_folders, [broker]).healed
    checked = check_fault(fault, two_folders, leader_of().pick(two_folders))
    assert checked.bite.way == two_folders.way
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault}, {checked.bite.way}: {checked.bite.proof} {dict(checked.bite.measured)}")
    print(f"  healed: {checked.healing.proof} {dict(checked.healing.measured)}")


@pytest.mark.parametrize("two_folders", ["byteman"], indirect=True)
def test_a_missing_log_folder_is_an_error_that_names_the_option(
    two_folders: TwoFolders,
) -> None:
    nodes = leader_of().pick(two_folders)
    with (
        pytest.raises(FaultError, match=r"has no log folder 3; .*log_folders=3"),
        BrokenDisk(folder=3).hold(two_folders, nodes),
    ):
        pass
