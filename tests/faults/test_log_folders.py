"""One of several log folders broken, on brokers in memory, and in the rules of Byteman and of the FUSE file system."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from faults.broken_disk import BrokenDisk
from harness.clusters.base.options import Options
from harness.clusters.disk import byteman
from harness.clusters.disk.faulty_file_system import Order
from harness.contracts import DiskFault, DiskHarm, FolderBreakable, PartitionState
from harness.errors import ClusterError, FaultError, UsageError
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, TOPIC, FakeArena, FakeCluster, FakeNode

ONE_FOLDER = BrokenDisk(folder=2)


@dataclass
class FolderNode(FakeNode):
    """Partition 0 is in its second log folder, partition 1 in the first. An offline folder stays offline until a restart."""

    names: Sequence[str] = ("1", "2")
    broken: str = ""
    offline: set[str] = field(default_factory=set)
    dies: bool = False

    def break_disk(self, how: DiskFault) -> str:
        self.broken = "" if self.stubborn else how.folder
        return super().break_disk(how)

    def mend_disk(self, harm: DiskHarm | None = None) -> None:
        super().mend_disk(harm)
        self.broken = ""

    def shut_down(self, limit_s: float = 60.0) -> int:
        self.calls.append("shut_down")
        self.alive = False
        return 0

    def restart(self) -> None:
        super().restart()
        self.offline.clear()

    def folders(self) -> Sequence[str]:
        return self.names

    def partitions_in(self, folder: str) -> Collection[str]:
        return {"1": [f"{TOPIC}-1", "other-0"], "2": [f"{TOPIC}-0"]}.get(folder, [])

    def append_to(self, folder: str) -> None:
        if folder == self.broken:
            self.offline.add(folder)
            self.alive = not self.dies
        if folder in self.offline or not self.alive:
            raise ClusterError("error 56")


@dataclass
class FolderCluster(FakeCluster):
    """A broker with an offline folder neither leads nor follows the partitions in it."""

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        states = []
        for number, names in self.replicas.items():
            dead = [
                node.name
                for node in self.brokers
                if isinstance(node, FolderNode)
                and (
                    not node.alive or any(f"{topic}-{number}" in node.partitions_in(f) for f in node.offline)
                )
            ]
            in_sync = tuple(name for name in names if name not in dead)
            leader = in_sync[0] if in_sync else None
            states.append(PartitionState(topic, number, leader, 0, tuple(names), in_sync or tuple(names[:1])))
        return states


@pytest.fixture
def arena() -> FakeArena:
    nodes = [FolderNode(f"broker-{n}") for n in (1, 2, 3)]
    names = ("broker-2", "broker-3", "broker-1")
    return FakeArena(FolderCluster(list(nodes), {0: names, 1: names}))


def target(arena: FakeArena) -> FolderNode:
    node = arena.cluster.brokers[1]
    assert isinstance(node, FolderNode)
    return node


@pytest.mark.parametrize("fault", [ONE_FOLDER, BrokenDisk(read_only=True, folder=2)], ids=str)
def test_passes_the_check_of_its_contract(arena: FakeArena, fault: BrokenDisk) -> None:
    node = target(arena)
    assert isinstance(node, FolderBreakable)
    checked = check_fault(fault, arena, [node])
    assert "log folder 2 of broker-2 refuses records (error 56), broker-2 still runs" in checked.bite.proof
    assert checked.bite.measured["partitions_moved"] == 1
    assert checked.bite.measured["leaders_kept"] == 1
    assert node.calls[:4] == ["break_disk orders", "mend_disk", "shut_down", "restart"]


def test_a_folder_on_all_brokers_leaves_its_partitions_without_a_leader(arena: FakeArena) -> None:
    with ONE_FOLDER.hold(arena, arena.cluster.brokers) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["partitions_offline"] == 3
        leaders = {state.partition: state.leader for state in arena.cluster.partitions(TOPIC)}
        assert leaders == {0: None, 1: "broker-2"}
    assert ONE_FOLDER.healed(arena, arena.cluster.brokers).healed


def test_no_bite_when_the_folder_accepts_records_or_has_none_of_the_topic(arena: FakeArena) -> None:
    arena.patience = IMPATIENT
    node = target(arena)
    node.stubborn = True
    with ONE_FOLDER.hold(arena, [node]) as bite:
        assert not bite.bit
        assert "log folder 2 of broker-2 still accepts records" in bite.proof
    node.stubborn, node.names = False, ("1", "2", "3")
    with BrokenDisk(folder=3).hold(arena, [node]) as bite:
        assert not bite.bit
        assert "has nothing of orders" in bite.proof
    with ONE_FOLDER.hold(arena, []) as bite:
        assert not bite.bit


def test_no_bite_when_the_whole_broker_goes_down(arena: FakeArena) -> None:
    node = target(arena)
    node.dies = True
    with ONE_FOLDER.hold(arena, [node]) as bite:
        assert not bite.bit
        assert bite.proof == "broker-2 has ended"
    assert node.calls[-2:] == ["mend_disk", "restart"], "nothing to stop"


def test_no_bite_when_the_other_folder_is_harmed(arena: FakeArena, monkeypatch: pytest.MonkeyPatch) -> None:
    node = target(arena)

    def all_refuse(folder: str) -> None:
        if node.broken:
            node.offline |= {"1", "2"}
        if node.offline:
            raise ClusterError("error 56")

    monkeypatch.setattr(node, "append_to", all_refuse)
    with ONE_FOLDER.hold(arena, [node]) as bite:
        assert not bite.bit
        assert "log folder 1 of broker-2 accepts no record either" in bite.proof


def test_healing_is_not_claimed_while_the_folder_is_offline(arena: FakeArena) -> None:
    arena.patience = IMPATIENT
    node = target(arena)
    node.offline.add("2")
    healing = ONE_FOLDER.healed(arena, [node])
    assert not healing.healed
    assert "a log folder of broker-2 refuses records" in healing.proof
    node.alive = False
    assert "broker-2 not running" in ONE_FOLDER.healed(arena, [node]).proof


def test_a_broker_without_such_a_folder_is_refused(arena: FakeArena) -> None:
    with (
        pytest.raises(FaultError, match=r"no log folder 3; .*log_folders=3"),
        BrokenDisk(folder=3).hold(arena, [target(arena)]),
    ):
        pass
    with pytest.raises(FaultError, match="bare"), ONE_FOLDER.hold(arena, [SimpleNamespace(name="bare")]):
        pass
    for number in (1, -1):
        with pytest.raises(UsageError, match=f"folder={number} is not a folder"):
            BrokenDisk(folder=number)


@pytest.mark.parametrize(
    ("path", "hit"),
    [
        ("/2/orders-0/0.log", True),
        ("/1/orders-0/0.log", False),
        ("/orders-0/0.log", False),
        ("/2/orders-0", False),
        ("/2/__consumer_offsets-0/0.log", False),
        ("/2/meta.properties", False),
    ],
)
def test_the_faulty_file_system_breaks_one_folder(path: str, hit: bool) -> None:
    assert Order(DiskHarm.BROKEN, 0, ("orders",), "2").hits(path) is hit
    assert Order(DiskHarm.BROKEN, 0, ("orders",)).hits("/1/orders-0/0.log")


def test_byteman_breaks_one_folder() -> None:
    order = byteman.order(DiskFault(DiskHarm.BROKEN, 0, "orders", folder="2"), also="probe")
    assert order == r"0 \Q2\E/(?!__)(\Qorders\E|\Qprobe\E).*"


def test_one_folder_is_the_data_folder_itself(tmp_path: Path) -> None:
    assert Options().folders_in(tmp_path) == [tmp_path]
    assert Options(log_folders=2).folders_in(tmp_path) == [tmp_path / "1", tmp_path / "2"]
