"""truncate_log, flip_bits and wipe_disk on log files that a cluster in memory pretends to serve."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults import _damage
from faults._damage import Log
from faults.flip_bits import FlipBits
from faults.truncate_log import TruncateLog
from faults.wipe_disk import WipeDisk
from harness import registry
from harness.contracts import Fault, Node
from harness.errors import FaultError, UsageError
from harness.kafka.batches import bad_batches, batches_of
from harness.kafka.protocol.produce import record_batch
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena, FakeCluster, FakeNode, make_arena

FAULTS: list[Fault] = [TruncateLog(), TruncateLog(1), FlipBits(), FlipBits("oldest"), WipeDisk()]


def batch(base: int, value: bytes = b"some value") -> bytes:
    return struct.pack(">q", base) + record_batch(value, 1)[8:]


@dataclass
class FiledCluster(FakeCluster):
    """Brokers with folders; a broker that starts fetches the leader's records, as in Kafka."""

    top: Path = Path()

    def replica_folders(self, topic: str, partition: int) -> Mapping[str, Path]:
        return {name: self.folder(name, topic, partition) for name in self.replicas[partition]}

    def folder(self, name: str, topic: str, partition: int) -> Path:
        return self.top / name / f"{topic}-{partition}"


@dataclass
class FiledNode(FakeNode):
    cluster: FiledCluster | None = None
    fetches: bool = True

    def restart(self) -> None:
        assert self.cluster is not None
        for state in self.cluster.partitions("orders"):
            if self.fetches and not self.alive and self.name in state.replicas and state.leader:
                own = self.cluster.folder(self.name, "orders", state.partition)
                theirs = self.cluster.folder(state.leader, "orders", state.partition)
                newest = max(theirs.glob("*.log"))
                own.mkdir(exist_ok=True)
                (own / newest.name).write_bytes(newest.read_bytes())
        super().restart()


@pytest.fixture
def arena(tmp_path: Path) -> FakeArena:
    return filed_arena(tmp_path)


def filed_arena(tmp_path: Path) -> FakeArena:
    """Return an arena in which each log has two segments with offsets 0 to 2 and 3 to 5."""
    plain = make_arena()
    nodes = [FiledNode(node.name, node.peers) for node in plain.cluster.brokers]
    cluster = FiledCluster(list(nodes), plain.cluster.replicas, top=tmp_path)
    for node in nodes:
        node.cluster = cluster
    for partition, names in plain.cluster.replicas.items():
        for name in names:
            folder = cluster.folder(name, "orders", partition)
            folder.mkdir(parents=True)
            (folder / "00000000000000000000.log").write_bytes(b"".join(batch(n) for n in (0, 1, 2)))
            (folder / "00000000000000000003.log").write_bytes(b"".join(batch(n) for n in (3, 4, 5)))
    return FakeArena(cluster, plain.workers)


def logs(arena: FakeArena, name: str) -> list[Log]:
    return _damage.logs_of(arena, [name])


@pytest.fixture
def impatient(arena: FakeArena) -> None:
    arena.patience = IMPATIENT


@pytest.mark.parametrize("fault", FAULTS, ids=["truncate_log", "one byte", "flip_bits", "oldest", "wipe"])
def test_passes_the_check_of_its_contract(arena: FakeArena, fault: Fault) -> None:
    node = arena.cluster.brokers[1]  # leads partition 0
    check_fault(fault, arena, [node])
    assert [log.end() for log in logs(arena, node.name)] == [6, 6]
    assert str(registry.load("fault", str(fault.describe()["fault"]))()) == fault.describe()["fault"]


def test_a_torn_batch_is_lost_as_a_whole(arena: FakeArena) -> None:
    node = arena.cluster.brokers[2]
    assert isinstance(node, FiledNode)
    node.fetches = False
    with TruncateLog(1).hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        assert bite.proof == "orders-0 at broker-3 lost its last 1 records; started again"
        assert bite.measured == {"logs_cut": 1, "records_cut": 1}
        assert [log.end() for log in logs(arena, "broker-3")] == [5]
        assert all(log.end() == 6 for log in logs(arena, "broker-1")), "no other log is touched"
    assert node.calls == ["kill", "restart", "restart"]


def test_a_cut_goes_no_further_than_its_segment(arena: FakeArena) -> None:
    node = arena.cluster.brokers[2]
    assert isinstance(node, FiledNode)
    node.fetches = False
    with TruncateLog(10**6).hold(arena, [node]) as bite:
        assert bite.measured["records_cut"] == 3
        assert [log.end() for log in logs(arena, "broker-3")] == [3]


@pytest.mark.parametrize(("fault", "segment"), [(FlipBits(), 1), (FlipBits("oldest"), 0)], ids=str)
def test_one_byte_of_one_batch_is_wrong_and_is_put_back(
    arena: FakeArena, fault: FlipBits, segment: int
) -> None:
    node = arena.cluster.brokers[2]
    assert isinstance(node, FiledNode)
    node.fetches = False
    (log,) = logs(arena, "broker-3")
    before = log.segments()[segment].read_bytes()
    with fault.hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        assert bite.measured == {"bad_batches": 1, "bad_after_start": 1}
        now = log.segments()[segment].read_bytes()
        assert sum(a != b for a, b in zip(before, now, strict=True)) == 1
        assert [span.base for span in bad_batches(log.segments()[segment])] == [1 + 3 * segment]
    assert log.segments()[segment].read_bytes() == before


def test_a_batch_that_was_fetched_again_is_not_flipped_back(arena: FakeArena) -> None:
    node = arena.cluster.brokers[2]
    with FlipBits().hold(arena, [node]) as bite:
        assert bite.measured == {"bad_batches": 1, "bad_after_start": 0}
        assert "Kafka has cut off 1 and left 0" in bite.proof
    assert [log.bad() for log in logs(arena, "broker-3")] == [0]


@pytest.mark.parametrize(
    ("voters", "kept"), [(["controller-1"], set()), (["broker-2"], {"__cluster_metadata-0"})]
)
def test_a_wiped_disk_has_nothing_but_its_format_and_the_metadata_of_a_voter(
    arena: FakeArena, voters: list[str], kept: set[str]
) -> None:
    node = arena.cluster.brokers[1]
    assert isinstance(node, FiledNode)
    node.fetches = False
    arena.cluster.controllers = lambda: voters  # type: ignore[method-assign]
    (top,) = {log.folder.parent for log in logs(arena, node.name)}
    for name in ("meta.properties", "recovery-point-offset-checkpoint"):
        (top / name).write_text("")
    (top / "__cluster_metadata-0").mkdir()
    with WipeDisk().hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        assert bite.measured == {"logs_wiped": 2, "records_wiped": 12}
        assert {path.name for path in top.iterdir()} == {"meta.properties"} | kept
    assert node.calls == ["kill", "restart", "restart"]
    assert all(log.end() == 6 for log in logs(arena, "broker-1")), "no other disk is touched"


@pytest.mark.parametrize("fault", FAULTS[1:], ids=str)
def test_an_empty_log_cannot_be_damaged(arena: FakeArena, fault: Fault) -> None:
    for log in logs(arena, "broker-3"):
        for segment in log.segments():
            segment.write_bytes(b"")
    with fault.hold(arena, [arena.cluster.brokers[2]]) as bite:
        assert not bite.bit
        assert "broker-3 had nothing of orders" in bite.proof
    with fault.hold(arena, []) as bite:
        assert not bite.bit


@pytest.mark.usefixtures("impatient")
def test_nothing_is_damaged_while_the_broker_is_registered(arena: FakeArena) -> None:
    node = arena.cluster.brokers[1]
    node.reachable = lambda: True  # type: ignore[method-assign]
    for fault in FAULTS:
        with pytest.raises(FaultError, match="broker-2 still registered"), fault.hold(arena, [node]):
            pass
    assert node.calls[-1] == "restart"
    assert [(log.end(), log.bad()) for log in logs(arena, "broker-2")] == [(6, 0), (6, 0)]


@pytest.mark.usefixtures("impatient")
def test_healing_is_not_claimed_while_a_log_is_short_or_wrong(arena: FakeArena) -> None:
    node = arena.cluster.brokers[2]
    (log,) = logs(arena, "broker-3")
    newest = log.segments()[-1]
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-1])
    for fault in FAULTS:
        healing = fault.healed(arena, [node])
        assert not healing.healed
        assert "orders-0 at broker-3 ends at 5, the leader's log at 6" in healing.proof
    newest.write_bytes(whole[:-3] + b"?" + whole[-2:])
    assert "1 in orders-0 at broker-3" in FlipBits().healed(arena, [node]).proof
    newest.write_bytes(whole)
    assert FlipBits().healed(arena, [node]).healed
    node.alive = False
    assert "broker-3 not running" in TruncateLog().healed(arena, [node]).proof


def test_nodes_and_clusters_without_log_files_are_refused(arena: FakeArena) -> None:
    with pytest.raises(UsageError, match="cut_bytes=0"):
        TruncateLog(0)
    with pytest.raises(UsageError, match=r"'middle'.*newest, oldest"):
        FlipBits("middle")
    workers: list[Node] = list(arena.workers)
    plain = make_arena()
    for fault in FAULTS:
        with pytest.raises(FaultError, match="producer-1"), fault.hold(arena, workers):
            pass
        with pytest.raises(FaultError, match="not readable"), fault.hold(plain, plain.cluster.brokers):
            pass


# Checksums.


def test_checksums_are_compared_over_all_bytes_after_them(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    for size in (0, 1, 300, 511, 513, 5000, 9001):
        good = batch(0) + batch(1, bytes(n % 251 for n in range(size))) + batch(2)
        segment.write_bytes(good)
        assert bad_batches(segment) == []
        middle = list(batches_of(segment))[1]
        for place in (21, middle.size // 2, middle.size - 1):
            damaged = bytearray(good)
            damaged[middle.position + place] ^= 0x10
            segment.write_bytes(damaged)
            assert bad_batches(segment) == list(batches_of(segment))[1:2]
            assert [one.base for one in bad_batches(segment)] == [1]


def test_only_whole_batches_count(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000007.log"
    segment.write_bytes(batch(7) + batch(8) + batch(9)[:-1])
    assert [(span.base, span.last) for span in batches_of(segment)] == [(7, 7), (8, 8)]
    assert bad_batches(segment) == []
    segment.write_bytes(batch(7) + bytes(200))
    assert [span.base for span in batches_of(segment)] == [7], "zeros that were set aside"
