"""Bad disks without Kafka: the rules for Byteman, and the faults on nodes in memory."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from faults.broken_disk import BrokenDisk
from faults.full_disk import FullDisk
from faults.power_loss import PowerLoss
from faults.slow_disk import SlowDisk
from harness import registry
from harness.clusters.disk import byteman
from harness.contracts import DiskFault, DiskHarm, Fault
from harness.errors import ClusterError, FaultError, UsageError
from harness.kafka.protocol.fetch import fetch
from harness.kafka.protocol.raw_client import WireError
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena, FakeNode, make_arena
from tests.fake_server import serve

# --- without root ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("harm", "method", "act"),
    [
        (DiskHarm.SLOW_APPEND, "append", "Thread.sleep("),
        (DiskHarm.SLOW_FSYNC, "flush", "Thread.sleep("),
        (DiskHarm.SLOW_READ, "writeTo", "Thread.sleep("),
        (DiskHarm.FULL, "append", 'throw new java.io.IOException("No space left on device")'),
        (DiskHarm.BROKEN, "append", 'throw new java.io.IOException("Input/output error")'),
        (DiskHarm.READ_ONLY, "append", 'throw new java.io.IOException("Read-only file system")'),
    ],
)
def test_byteman_has_a_rule_for_each_harm(harm: DiskHarm, method: str, act: str) -> None:
    rules = byteman.script().split("ENDRULE")
    (rule,) = [one for one in rules if f"RULE onceproof-disk-{harm}\n" in one]
    assert f"\nMETHOD {method}\n" in rule
    assert f"\nDO {act}" in rule
    assert f'"{harm}")' in rule, "it reads its own order"


def test_orders_are_files_that_only_this_user_writes(tmp_path: Path) -> None:
    byteman.lay_out(tmp_path)
    assert byteman.given(tmp_path) == []
    byteman.give(tmp_path, [DiskFault(DiskHarm.SLOW_READ, 40, "orders")], also="probe")
    assert byteman.given(tmp_path) == ["slow_read"]
    assert (tmp_path / "byteman" / "slow_read").read_text() == r"40 [^/]*/(?!__)(\Qorders\E|\Qprobe\E).*"
    made = [tmp_path / "byteman", *(tmp_path / "byteman").iterdir()]
    assert len(made) == 1 + len(DiskHarm), "no drafts are left"
    assert not any(path.stat().st_mode & 0o022 for path in made)
    byteman.give(tmp_path, [], also="probe")
    assert byteman.given(tmp_path) == []


def test_the_answer_to_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    head = struct.pack(">ii", 0, 1) + struct.pack(">h", 5) + b"probe" + struct.pack(">ii", 1, 2)
    tail = struct.pack(">qqi", 9, 9, 0) + struct.pack(">i", 73) + bytes(73)
    serve(monkeypatch, {1: (4, 4)}, [head + struct.pack(">h", error) + tail for error in (0, 1)])
    assert fetch(("host", 1), "probe", 2, 0, 1.0) == 73
    with pytest.raises(WireError, match="probe-2 was refused: error 1"):
        fetch(("host", 1), "probe", 2, 0, 1.0)


# --- the faults ------------------------------------------------------------------------------------


class DyingNode(FakeNode):
    """Ends when its disk accepts no writes, as Kafka does."""

    unsynced = 100.0

    def break_disk(self, how: DiskFault) -> str:
        self.alive = self.stubborn or how.delay_ms > 0
        return super().break_disk(how)

    def lose_power(self) -> Mapping[str, float]:
        self.kill()
        return {
            "bytes_lost": self.unsynced,
            "records_lost": 3.0,
            "partitions_shortened": 1.0,
            "files_changed": 2.0,
        }


@pytest.fixture
def arena() -> FakeArena:
    made = make_arena(patience=0.02)  # a broker has 0.2 s instead of 10 s to end
    made.cluster.brokers = [DyingNode(each.name, each.peers) for each in made.cluster.brokers]
    return made


FAULTS: list[tuple[Fault, str, str]] = [
    (SlowDisk(harm="fsync"), "slow_disk-fsync", "rose from 1.0 to 51.0"),
    (SlowDisk(harm="read"), "slow_disk-read", "rose from 1.0 to 51.0"),
    (FullDisk(), "full_disk", "broker-2 ended after "),
    (BrokenDisk(), "broken_disk", "leader of orders-0 moved from broker-2 to broker-3"),
    (BrokenDisk(read_only=True), "broken_disk-read_only", "broker-2 ended after "),
    (PowerLoss(), "power_loss", "broker-2 lost 100 bytes that were not fsynced, 3 records of 1 partitions"),
]


@pytest.mark.parametrize(("fault", "word", "proof"), FAULTS, ids=lambda each: str(each))
def test_passes_the_check_of_its_contract(arena: FakeArena, fault: Fault, word: str, proof: str) -> None:
    assert str(fault) == word
    assert proof in check_fault(fault, arena, [arena.cluster.brokers[1]]).bite.proof
    assert registry.load("fault", word.split("-")[0]) is type(fault)


@pytest.mark.parametrize("fault", [fault for fault, _word, _proof in FAULTS], ids=str)
def test_without_a_target_nothing_bites(arena: FakeArena, fault: Fault) -> None:
    with fault.hold(arena, []) as bite:
        assert not bite.bit


@pytest.mark.parametrize("fault", [FullDisk(), BrokenDisk(), PowerLoss()], ids=str)
def test_what_has_no_effect_does_not_bite_and_is_undone(arena: FakeArena, fault: Fault) -> None:
    target = arena.cluster.brokers[1]
    target.stubborn = True
    with fault.hold(arena, [target]) as bite:
        assert not bite.bit
        assert "still" in bite.proof
    assert target.calls[-1] == "restart"


def test_a_disk_that_was_slow_before_does_not_bite() -> None:
    arena = make_arena()
    target = arena.cluster.brokers[1]
    target.delay_ms = 30
    with SlowDisk(delay_ms=50).hold(arena, [target]) as bite:
        assert not bite.bit
        assert bite.measured == {"before_ms": 31.0, "during_ms": 51.0}


def test_a_power_loss_that_loses_no_bytes_does_not_bite(arena: FakeArena) -> None:
    target = arena.cluster.brokers[1]
    assert isinstance(target, DyingNode)
    target.unsynced = 0.0
    with PowerLoss().hold(arena, [target]) as bite:
        assert bite.proof == "broker-2 lost nothing: all was fsynced"
        assert not bite.bit


def test_a_broker_that_refuses_records_and_still_runs_counts_as_bitten(
    arena: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka keeps its partitions when a read fails before the write."""
    target = arena.cluster.brokers[1]
    target.stubborn = True

    def refuse(broker: str) -> float:
        if "break_disk orders" in target.calls and "restart" not in target.calls:
            raise ClusterError("error -1")
        return 1.0

    monkeypatch.setattr(arena.cluster, "produce_round_trip_ms", refuse)
    with BrokenDisk().hold(arena, [target]) as bite:
        assert bite.bit
        assert "(error -1), still runs and keeps its partitions" in bite.proof
        assert bite.measured["ended"] == 0
    assert target.calls == ["break_disk orders", "mend_disk", "kill", "restart"]


def test_healing_is_not_claimed_while_records_are_refused(
    arena: FakeArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena.patience = IMPATIENT
    target = arena.cluster.brokers[1]

    def refuse(broker: str) -> float:
        raise ClusterError("error 56")

    monkeypatch.setattr(arena.cluster, "produce_round_trip_ms", refuse)
    assert "broker-2 refuses records: error 56" in FullDisk().healed(arena, [target]).proof
    target.alive = False
    for fault in (FullDisk(), PowerLoss()):
        healing = fault.healed(arena, [target])
        assert not healing.healed
        assert "broker-2 not running" in healing.proof


def test_a_node_without_the_power_is_refused(arena: FakeArena) -> None:
    bare = SimpleNamespace(name="bare")
    for fault in (SlowDisk(), FullDisk(), BrokenDisk(), PowerLoss()):
        assert not isinstance(bare, fault.needs)
        with pytest.raises(FaultError, match="bare"), fault.hold(arena, [bare]):
            pass


def test_bad_settings_are_named() -> None:
    with pytest.raises(UsageError, match=r"harm='rust'.*append, fsync, read"):
        SlowDisk(harm="rust")


def test_settings_are_described() -> None:
    assert SlowDisk(80, "read").describe() == {
        "fault": "slow_disk",
        "harm": "read",
        "delay_ms": 80,
        "rate_kb_s": 0,
    }
    assert (
        json.dumps(dict(BrokenDisk(read_only=True).describe()))
        == '{"fault": "broken_disk", "read_only": true, "folder": 0}'
    )
