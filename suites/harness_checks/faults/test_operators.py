"""Operator actions on a real cluster under load: each fault bites and heals, and the modes hold or lose as documented.

One cluster for all tests: three brokers and one controller; the brokers check retention every second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faults.add_partitions import AddPartitions
from faults.delete_records import DeleteRecords
from faults.kill import Kill
from faults.reassign import Reassign
from faults.short_retention import ShortRetention
from faults.transfer_leadership import TransferLeadership
from faults.unclean_election import UncleanElection
from harness.campaign import Campaign
from harness.clusters.local import LocalCluster
from harness.contracts import Fault, Lane, Mode, TopicSettings, Verdict
from harness.kafka.admin import Administrator
from harness.ledger.rundir import read_json
from harness.scenario import ConsumerSettings, Scenario
from harness.schedule import once, overlapping
from harness.targets import consumer, follower_of, leader_of
from harness.testing.check_fault import check_fault
from suites.scenarios.fault_cases import TRUNCATED
from suites.support.arena import BareArena

pytestmark = pytest.mark.conformance
RETENTION = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "1000"}
NARROW = TopicSettings(replication_factor=2, min_insync_replicas=1)  # leaves a broker free
RISKY = TopicSettings(min_insync_replicas=1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with LocalCluster(folder, controllers=1, broker_settings=RETENTION) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def campaign(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(cluster, tmp_path_factory.mktemp("runs")) as campaign:
        yield campaign


@contextmanager
def under_load(cluster: LocalCluster, topic: str) -> Iterator[BareArena]:
    """A topic under load, and a group that has committed a part of its records."""
    arena, ended = BareArena(cluster, topic), threading.Event()
    bootstrap = {"bootstrap.servers": cluster.bootstrap_servers(Lane.CONTROL), "log_level": 0}
    producer = Producer({**bootstrap, "message.timeout.ms": 60000})

    def write() -> None:
        while not ended.wait(0.02):
            for _ in range(10):
                producer.produce(topic, b"x" * 50)
            producer.poll(0)

    for _ in range(1000):
        producer.produce(topic, b"x" * 50)
    assert producer.flush(30) == 0
    writing = threading.Thread(target=write, daemon=True)
    member = Consumer({**bootstrap, "group.id": arena.group})
    ends = {number: end for number, (_, end) in Administrator(cluster, topic).offsets().items() if end}
    member.commit(
        offsets=[TopicPartition(topic, number, end) for number, end in ends.items()], asynchronous=False
    )
    member.close()
    writing.start()
    try:
        yield arena
    finally:
        ended.set()
        writing.join()
        producer.flush(30)


CHECKED: list[tuple[Fault, TopicSettings, str]] = [
    (TransferLeadership(), TopicSettings(), "admin api"),
    (Reassign(), TopicSettings(), "shrink"),
    (Reassign(), NARROW, "swap"),
    (AddPartitions(more=2), TopicSettings(), "admin api"),
    (DeleteRecords(), TopicSettings(), "admin api"),
    (DeleteRecords(beyond_group=True), TopicSettings(), "admin api"),
    (ShortRetention(), TopicSettings(), "admin api"),
    (UncleanElection(), RISKY, "admin api"),
]


@pytest.mark.parametrize(
    ("fault", "settings", "way"),
    CHECKED,
    ids=[f"{fault}-{way.replace(' ', '_')}" for fault, _, way in CHECKED],
)
def test_bites_and_heals(
    cluster: LocalCluster,
    fault: Fault,
    settings: TopicSettings,
    way: str,
    record_property: Callable[[str, object], None],
) -> None:
    topic = f"{fault}-{way.replace(' ', '_')}"
    cluster.create_topic(topic, settings)
    with under_load(cluster, topic) as arena:
        target = follower_of() if isinstance(fault, UncleanElection) else leader_of()
        checked = check_fault(fault, arena, target.pick(arena))
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{fault}: {checked.bite.proof} {dict(checked.bite.measured)} | {checked.healing.proof}")
    assert checked.bite.way == way
    cluster.delete_topic(topic)


def test_deleting_and_expiring_do_not_bite_on_an_empty_topic(cluster: LocalCluster) -> None:
    arena = BareArena(cluster, "empty")
    cluster.create_topic(arena.topic, TopicSettings())
    for fault in (DeleteRecords(), DeleteRecords(beyond_group=True), ShortRetention()):
        with fault.hold(arena, leader_of().pick(arena)) as bite:
            assert not bite.bit, bite.proof
        assert fault.healed(arena, leader_of().pick(arena)).healed
    cluster.delete_topic(arena.topic)


def test_each_hold_adds_partitions_that_can_be_written_to(cluster: LocalCluster) -> None:
    arena = BareArena(cluster, "growing")
    cluster.create_topic(arena.topic, TopicSettings())
    for before in (3, 4):
        with AddPartitions().hold(arena, leader_of().pick(arena)) as bite:
            assert bite.measured["partitions_after"] == before + 1, bite.proof
    assert sorted(Administrator(cluster, arena.topic).offsets()) == [0, 1, 2, 3, 4]
    cluster.delete_topic(arena.topic)


HELD: list[Fault] = [
    TransferLeadership(),
    Reassign(),
    AddPartitions(more=2),
    DeleteRecords(),
    DeleteRecords(share=1.0, beyond_group=True),
    ShortRetention(),
]
LOG_STARTS_MOVE = (DeleteRecords, ShortRetention)


@pytest.mark.parametrize("mode", [Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE])
@pytest.mark.parametrize("fault", HELD, ids=str)
def test_the_modes_hold(campaign: Campaign, fault: Fault, mode: Mode) -> None:
    schedule = once(fault, on=leader_of(), after_s=1.0, hold_s=2.0)
    result = campaign.run(Scenario(name=f"{mode}-{fault}", mode=mode, schedule=schedule)).result()
    assert result.verdict is Verdict.HELD, result.explain()
    # Deleted records are not counted as lost, and only faults that delete have any.
    assert (result.count("expired") > 0) == isinstance(fault, LOG_STARTS_MOVE), result.explain()
    unchanged = read_json(result.run.manifest, "")["topic_unchanged"]
    assert unchanged is not isinstance(fault, AddPartitions)


def test_unread_deleted_records_are_expired_and_not_lost(campaign: Campaign) -> None:
    """The only reader is dead while records that it never got are deleted."""
    delete = DeleteRecords(share=1.0, beyond_group=True)
    scenario = Scenario(
        name="at_least_once-delete_unread",
        mode=Mode.AT_LEAST_ONCE,
        consumers=ConsumerSettings(members=1),
        schedule=overlapping(
            once(Kill(), on=consumer(1), after_s=0.5, hold_s=5.0),
            once(delete, on=leader_of(), after_s=3.0, hold_s=1.0),
        ),
    )
    result = campaign.run(scenario).result()
    assert result.verdict is Verdict.HELD, result.explain()
    beyond = result.reconciled["coverage"]["windows"][1]["measured"]["beyond_committed"]
    assert beyond > 0
    assert result.count("expired") >= beyond, result.explain()
    never = result.count("in_log") + result.count("expired") - result.count("delivered")
    print(f"\n{result.count('expired')} expired, of which at least {never} were never given to the group")
    assert never > 0, "some records were never read"


@pytest.mark.control
@pytest.mark.parametrize("mode", [Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE])
def test_an_unclean_election_loses_acked_records(campaign: Campaign, mode: Mode) -> None:
    scenario = Scenario(
        name=f"control-{mode}-unclean_election",
        mode=mode,
        topic=RISKY,
        expected=Verdict.VIOLATED,
        requires={"lost": 1},
        # Markers of transactions are truncated as well.
        tolerates=TRUNCATED if mode is Mode.AT_LEAST_ONCE else (*TRUNCATED, "torn", "aborted_read"),
        control=True,
        schedule=once(UncleanElection(), on=follower_of(), after_s=0.5, hold_s=2.0),
    )
    result = campaign.run(scenario).result()
    assert result.as_expected, result.explain()
