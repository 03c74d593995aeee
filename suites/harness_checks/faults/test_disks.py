"""Disk faults on real brokers: each bites and heals, by every way, and affects the operation in its name; power loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from faults._disk import wait_takes_records
from faults.broken_disk import BrokenDisk
from faults.full_disk import FullDisk
from faults.power_loss import PowerLoss
from faults.slow_disk import SlowDisk
from harness.clusters.base.options import Options
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalBroker
from harness.contracts import (
    DiskHarm,
    Fault,
    Lane,
    Node,
    PowerLosable,
    ReadSlowable,
    TopicSettings,
)
from harness.errors import FaultError
from harness.kafka.protocol import raw_client
from harness.targets import Target, every_broker, follower_of, leader_of
from harness.testing.check_fault import check_fault
from harness.testing.leftovers import mounts_of, processes_of
from harness.waiting import wait_until
from suites.support.arena import TOPIC, BareArena

FLUSHED_TOPIC = "flushed"
RECORDS = 500


@dataclass(frozen=True)
class DiskArena(BareArena):
    way: str = ""  # of breaking its disks


@pytest.fixture(scope="module")
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DiskArena]:
    """One cluster for all checks of a way."""
    folder, way = tmp_path_factory.mktemp("cluster"), request.param
    with LocalCluster(folder, controllers=1, options=Options(fuse=way == "fuse", byteman=True)) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        cluster.create_topic(FLUSHED_TOPIC, TopicSettings(extra={"flush.messages": "1"}))
        yield DiskArena(cluster, way=way)
        assert mounts_of(folder) == []
    assert processes_of(folder) == []


both_ways = pytest.mark.parametrize("arena", ["byteman", "fuse"], indirect=True)
by_fuse = pytest.mark.parametrize("arena", ["fuse"], indirect=True)
by_byteman = pytest.mark.parametrize("arena", ["byteman"], indirect=True)


def _check(arena: DiskArena, fault: Fault, target: Target, record: Callable[[str, object], None]) -> str:
    checked = check_fault(fault, arena, target.pick(arena))
    record("bite", checked.bite.proof)
    record("healing", checked.healing.proof)
    print(f"\n{fault} {target}, {checked.bite.way}: {checked.bite.proof} {dict(checked.bite.measured)}")
    print(f"  healed: {checked.healing.proof} {dict(checked.healing.measured)}")
    return checked.bite.way


@pytest.mark.conformance
@both_ways
@pytest.mark.parametrize(
    ("fault", "target"),
    [
        (SlowDisk(), leader_of()),
        (SlowDisk(delay_ms=200), follower_of()),
        (SlowDisk(harm="fsync"), leader_of()),
        (SlowDisk(harm="read"), leader_of()),
        (FullDisk(), leader_of()),
        (FullDisk(), every_broker()),
        (BrokenDisk(), leader_of()),
        (BrokenDisk(read_only=True), follower_of()),
    ],
    ids=lambda each: str(each),
)
def test_bites_and_heals(
    arena: DiskArena, fault: Fault, target: Target, record_property: Callable[[str, object], None]
) -> None:
    way = _check(arena, fault, target, record_property)
    assert way == ("byteman" if str(fault) == "slow_disk-read" else arena.way)


@pytest.mark.conformance
@by_fuse
@pytest.mark.parametrize("target", [leader_of(), every_broker()], ids=lambda each: str(each))
def test_power_loss_bites_and_heals(
    arena: DiskArena, target: Target, record_property: Callable[[str, object], None]
) -> None:
    assert _check(arena, PowerLoss(), target, record_property) == "fuse"


@pytest.mark.conformance
@both_ways
@pytest.mark.parametrize("harm", ["append", "fsync", "read"])
def test_each_slowness_shows_where_its_name_says(arena: DiskArena, harm: str) -> None:
    """Producers feel a slow append, and a slow fsync only with flush.messages=1; readers feel a slow read."""
    fault, nodes = SlowDisk(delay_ms=100, harm=harm), leader_of().pick(arena)
    before = _quickest(nodes[0])
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        during = _quickest(nodes[0])
    assert fault.healed(arena, nodes).healed
    print(f"\n{harm} slow by 100 ms ({bite.way}), quickest of 15 in ms: {before} -> {during}")
    assert max(before.values()) < 100, "nothing is slow without the fault"
    slow = {name for name, took_ms in during.items() if took_ms >= 100}
    assert (
        slow
        == {
            "append": {"produce", "produce and fsync"},
            "fsync": {"produce and fsync"},
            "read": {"fetch"},
        }[harm]
    )


def _quickest(node: Node) -> dict[str, float]:
    assert isinstance(node, ReadSlowable)
    probes: dict[str, Callable[[], float]] = {
        "produce": lambda: node.disk_latency_ms(DiskHarm.SLOW_APPEND),
        "produce and fsync": lambda: node.disk_latency_ms(DiskHarm.SLOW_FSYNC),
        "fetch": node.read_latency_ms,
    }
    return {name: round(min(probe() for _ in range(15)), 1) for name, probe in probes.items()}


@pytest.mark.conformance
@by_byteman
def test_a_slow_read_is_felt_by_producers_that_wait_for_followers(arena: DiskArena) -> None:
    fault, leader = SlowDisk(100, "read"), leader_of().pick(arena)[0]
    assert isinstance(leader, LocalBroker)

    def replicated_ms() -> float:
        begun = time.monotonic()
        raw_client.produce(leader.control, TOPIC, 0, b"probe", timeout_s=10.0)  # acks=all, three copies
        return (time.monotonic() - begun) * 1000

    before = min(replicated_ms() for _ in range(15))
    with fault.hold(arena, [leader]) as bite:
        assert bite.bit, bite.proof
        during = min(replicated_ms() for _ in range(15))
    print(
        f"\nread slow by 100 ms: a replicated record takes {during:.1f} ms instead of {before:.1f} (quickest)"
    )
    assert before < 50
    assert during >= 100
    assert fault.healed(arena, [leader]).healed


@pytest.mark.conformance
@both_ways
def test_harms_combine_and_outlive_a_kill_and_a_pause(arena: DiskArena) -> None:
    """Each is undone separately; a restarted broker has the same disk; a paused broker cannot be probed."""
    node = leader_of().pick(arena)[0]
    assert isinstance(node, LocalBroker)
    with ExitStack() as asleep, ExitStack() as held:
        asleep.callback(node.resume)
        for harm in ("read", "fsync"):
            assert held.enter_context(SlowDisk(100, harm).hold(arena, [node])).bit
        with SlowDisk(100).hold(arena, [node]) as bite:
            assert bite.bit, bite.proof
            node.kill()
            node.restart()
            wait_takes_records(arena, node)
            assert min(_quickest(node).values()) >= 100
        during = _quickest(node)
        assert during["produce"] < 100 <= min(during["fetch"], during["produce and fsync"]), during
        node.pause()
        wait_until(node.paused, 5.0, "it does not stop")
    wait_takes_records(arena, node)
    assert max(_quickest(node).values()) < 100
    assert arena.cluster.residue() == []


@pytest.mark.conformance
@by_fuse
def test_power_of_all_lost_takes_acknowledged_records_unless_each_was_fsynced(arena: DiskArena) -> None:
    """The loss of one broker's power loses nothing, since others have copies; the loss of all at once does."""
    lost = {name: _acknowledged_and_lost(arena, target) for name, target in
            (("leader", leader_of()), ("every broker", every_broker()))}  # fmt: skip
    print(f"\nacknowledged records lost, of {RECORDS} before each loss of power: {lost}")
    assert lost["leader"] == {TOPIC: 0, FLUSHED_TOPIC: 0}
    assert lost["every broker"][TOPIC] > 0
    assert lost["every broker"][FLUSHED_TOPIC] == 0


def _note(acked: list[int], error: object, message: Message) -> None:
    offset = message.offset()
    if error is None and offset is not None:
        acked.append(offset)


def _acknowledged_and_lost(arena: DiskArena, target: Target) -> dict[str, int]:
    servers = {"bootstrap.servers": arena.cluster.bootstrap_servers(Lane.CONTROL), "log_level": 0}
    ends: dict[str, int] = {}
    for topic in (TOPIC, FLUSHED_TOPIC):
        producer = Producer({**servers, "acks": "all", "enable.idempotence": True})
        acked: list[int] = []
        for number in range(RECORDS):
            producer.produce(topic, b"%d" % number, partition=0, on_delivery=partial(_note, acked))
        assert producer.flush(60) == 0
        assert len(acked) == RECORDS, "all were acknowledged"
        ends[topic] = max(acked) + 1
    fault, nodes = PowerLoss(), target.pick(arena)
    with fault.hold(arena, nodes) as bite:
        assert bite.bit, bite.proof
        print(f"\npower loss of {target}: {bite.proof}")
    healing = fault.healed(arena, nodes)
    assert healing.healed, healing.proof
    reader = Consumer({**servers, "group.id": "after-power-loss"})
    try:
        return {
            topic: end - int(reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
            for topic, end in ends.items()
        }
    finally:
        reader.close()


@pytest.mark.conformance
@by_byteman
def test_without_the_file_system_nothing_can_lose_power(arena: DiskArena) -> None:
    nodes = leader_of().pick(arena)
    assert not isinstance(nodes[0], PowerLosable)
    with (
        pytest.raises(FaultError, match=f"{nodes[0].name} cannot lose power"),
        PowerLoss().hold(arena, nodes),
    ):
        pass
    assert arena.cluster.residue() == []
