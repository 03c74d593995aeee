"""Claims about what survives the loss of brokers."""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its types leave some out
    ConfigResource,
    ResourceType,
)

from faults.kill import Kill
from faults.transfer_leadership import TransferLeadership
from harness.claims.bench import Bench
from harness.claims.claim import Claim, Measurements, Observation, Truth
from harness.contracts import Lane, Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import active_controller, follower_of, leader_of
from harness.waiting import wait_until
from suites.claims._runs import avoided, killed_nodes, outside, provoked, shown_by

SOON_S, LONG_S = 20.0, 60.0


def _under(name: str, fault: object, on: object, **more: object) -> Scenario:
    return Scenario(
        name=f"claim-dur-{name}",
        mode=Mode.AT_LEAST_ONCE,
        schedule=once(fault, on=on, after_s=0.5, hold_s=1.0),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def acks_all(bench: Bench) -> Measurements:
    return Measurements.of(
        bench.observed(_under("leader", Kill(), leader_of(0)), "the leader is killed"),
        bench.observed(_under("controller", Kill(), active_controller()), "the active controller is killed"),
        bench.observed(_under("follower", Kill(), follower_of(0)), "a follower is killed"),
    )


def one_replica(bench: Bench) -> Measurements:
    """Kill the only replica: the partition cannot be read or written until its broker is back."""
    topic = bench.topic(partitions=1, replication_factor=1, min_insync_replicas=1)
    acked = bench.send(topic, [{"value": b"%d" % n} for n in range(100)])
    leader = bench.cluster.view().partitions(topic)[0].leader
    assert leader is not None
    with killed_nodes(bench, [leader]):
        wait_until(
            lambda: bench.cluster.view().partitions(topic)[0].leader is None,
            LONG_S,
            f"{topic} keeps a leader",
        )
        unread, refused = bench.read(topic, 1, 5.0), _refused(bench, topic)
    back = bench.read(topic, 100, LONG_S)
    return Measurements.of(
        Observation("while its broker is dead the partition cannot be read or written", not unread and refused,
                    f"no leader; {len(unread)} records read in 5 s; the write failed: {refused}"),
        provoked(bench, "wiped_disk", "its disk is replaced: acked records are gone"),
        Observation("with its disk the records are back", len(back) == len(acked), f"{len(back)} of {len(acked)} records"),
    )  # fmt: skip


def _refused(bench: Bench, topic: str) -> bool:
    """Return True if a record is not acked within some seconds."""
    errors: list[object] = []
    producer = bench.producer(Lane.CONTROL, acks="all", message_timeout_ms=5000)
    producer.produce(topic, value=b"refused", on_delivery=lambda error, _: errors.append(error))
    producer.flush(SOON_S)
    return bool(errors) and errors[0] is not None


def two_of_three_down(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=1, replication_factor=3, min_insync_replicas=2)
    acked = bench.send(topic, [{"value": b"%d" % n} for n in range(100)])
    state = bench.cluster.view().partitions(topic)[0]
    with killed_nodes(bench, [name for name in state.replicas if name != state.leader]):
        wait_until(
            lambda: len(bench.cluster.view().partitions(topic)[0].in_sync) == 1,
            LONG_S,
            f"{topic}: no shrinking",
        )
        read, refused = bench.read(topic, 100, LONG_S), _refused(bench, topic)
    after = bench.send(topic, [{"value": b"again"}])
    return Measurements.of(
        Observation("the data can be read from the last replica", len(read) == len(acked), f"{len(read)} of {len(acked)} records"),
        Observation("writes need min.insync.replicas", refused, "with one replica in sync a write with acks=all is refused"),
        Observation("writes go on when the brokers are back", len(after) == 1, f"acked at offset {after[0].offset}"),
    )  # fmt: skip


def unclean_change(bench: Bench) -> Measurements:
    return Measurements.of(
        provoked(bench, "unclean_election", "a replica that is not in sync becomes leader"),
        avoided(bench, "unclean_election", "the partition waits for an in-sync replica instead"),
        _off_by_default(bench),
    )


def _off_by_default(bench: Bench) -> Observation:
    """Read the setting of a topic that sets nothing."""
    resource = ConfigResource(ResourceType.TOPIC, bench.topic(partitions=1))
    admin = bench.admin()  # kept in a variable: its requests end with it
    value = (
        admin.describe_configs([resource])[resource].result(SOON_S)["unclean.leader.election.enable"].value
    )
    return Observation(
        "a topic that sets nothing", value == "false", f"unclean.leader.election.enable={value}"
    )


def preferred_leaders(bench: Bench) -> Measurements:
    moved = TransferLeadership()
    return Measurements.of(
        bench.observed(_under("moved", moved, leader_of(0)), "leaders are moved under load, acks=all"),
        outside(
            provoked(bench, "acks1_preferred_election", "the same with acks=1 and followers that are behind")
        ),
    )


claims = (
    Claim(
        id="DUR-1", statement="acks=0: messages may vanish unnoticed.", expected=Truth.TRUE, setting="acks", case=shown_by("acks0_loss", "the leader dies", "the same with acks=all"),
        why="The producer counts a record as acked when it has left the client, whether a broker reads it or not.",
    ),
    Claim(
        id="DUR-2", statement="acks=1: acked messages vanish when the leader is lost before replication.",
        expected=Truth.TRUE, setting="acks", case=shown_by("acks1_failover", "the leader dies before its followers have fetched", "the same with acks=all"), quick=True,
        why="The leader acks before a follower has the record.",
    ),
    Claim(
        id="DUR-3", statement="acks=all with min.insync.replicas=2 and three replicas loses nothing when one broker dies.",
        expected=Truth.TRUE, setting="acks, min.insync.replicas, replication factor", case=acks_all,
        why="Every acked record is on two brokers, and only one of them can become leader.",
    ),
    Claim(
        id="DUR-4", statement="acks=all with min.insync.replicas=1 can lose messages.", expected=Truth.TRUE,
        setting="min.insync.replicas", case=shown_by("min_isr_1", "the in-sync set has shrunk to one broker, which is lost", "the same with min.insync.replicas=2"),
        why="All in-sync replicas may be one broker; what it acked alone is lost with it.",
    ),
    Claim(
        id="DUR-5", statement="An unclean leader change loses acked messages; it is off by default.", expected=Truth.TRUE,
        setting="unclean.leader.election.enable", case=unclean_change,
        why="The new leader lacks records that the old one had acked, and the others follow it.",
    ),
    Claim(
        id="DUR-6", statement="With replication factor 1 a dead broker takes its partitions with it.", expected=Truth.TRUE,
        setting="replication factor", case=one_replica,
        why="No other broker has the data: the partition is unavailable, and lost if the disk is.",
    ),
    Claim(
        id="DUR-7", statement="With three replicas two brokers may be down and the data remains; writes need min.insync.replicas.",
        expected=Truth.TRUE, setting="min.insync.replicas", case=two_of_three_down,
        why="The last replica in sync serves readers; acks=all is refused while fewer than min.insync.replicas are in sync.",
    ),
    Claim(
        id="DUR-8", statement="Moving leaders to the preferred replicas is harmless.", expected=Truth.CONDITIONAL,
        condition="producers use acks=all", setting="acks, auto.leader.rebalance.enable", case=preferred_leaders,
        why="With acks=1 the new leader may lack records that only the old one had.",
    ),
)  # fmt: skip
