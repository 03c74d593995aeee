"""Claims about consumer groups."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from faults.kill import Kill
from harness.claims.bench import Bench
from harness.claims.claim import Claim, ClusterNeeds, Measurements, Observation, Part, Truth
from harness.contracts import Mode
from harness.errors import WaitTimeout
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from harness.waiting import wait_until
from suites.claims._runs import avoided, contradicted, killed_nodes, provoked
from suites.scenarios import groups

JOIN_LIMIT_S = 60.0
STEADY_S = 2.0
IN_HAND = 10  # records
Assignment = frozenset[tuple[str, int]]  # topics by their place in the list, and partitions


@contextmanager
def members(bench: Bench, topics: Sequence[str], count: int, **settings: Any) -> Iterator[list[Consumer]]:
    group = bench.name("group")
    with ExitStack() as stack:
        joined = [stack.enter_context(bench.consumer(group_id=group, **settings)) for _ in range(count)]
        for each in joined:
            each.subscribe(list(topics))
        yield joined


def assignments(joined: Sequence[Consumer], partitions: int) -> list[Assignment]:
    """Poll all members until every partition has an owner for two seconds, and return who has what.

    On a slow machine a member that has not joined yet looks like an idle one. So wait until as many members have partitions as
    there can be; if that never happens, return the last steady state.
    """
    steady_since, last = time.monotonic(), list[Assignment]()

    def steady() -> bool:
        nonlocal steady_since, last
        for each in joined:
            each.poll(0.05)
        now = [frozenset((tp.topic, tp.partition) for tp in each.assignment()) for each in joined]
        if now != last or sum(map(len, now)) != partitions or not all(each.memberid() for each in joined):
            steady_since, last = time.monotonic(), now
        return time.monotonic() - steady_since > STEADY_S

    def spread() -> bool:
        return steady() and sum(map(bool, last)) == min(len(joined), partitions)

    with suppress(WaitTimeout):
        wait_until(spread, JOIN_LIMIT_S, "", every_s=0.0)
    wait_until(steady, JOIN_LIMIT_S, lambda: f"the group is not steady: {last}", every_s=0.0)
    return last


def one_reader_at_a_time(bench: Bench) -> Measurements:
    return Measurements.of(
        bench.observed(groups.group("range", "none"), "members join, leave and stall; classic protocol"),
        bench.observed(groups.group("consumer", "none"), "the same with the consumer protocol (KIP-848)"),
        *_removed_member(bench),
    )


def _removed_member(bench: Bench) -> tuple[Observation, Observation]:
    """A member does not poll for longer than max.poll.interval.ms while it has records in hand."""
    topic, group = bench.topic(partitions=1), bench.name("group")
    bench.send(topic, [{"value": b"%d" % n} for n in range(IN_HAND)])
    settings: dict[str, Any] = {"group_id": group, "session_timeout_ms": 6000, "max_poll_interval_ms": 6000}
    with bench.consumer(**settings) as first, bench.consumer(**settings) as second:
        first.subscribe([topic])
        held = bench.take(first, IN_HAND)
        second.subscribe([topic])
        again = bench.take(second, IN_HAND)
        try:
            first.commit(offsets=[TopicPartition(topic, 0, IN_HAND)], asynchronous=False)
            refused = ""
        except KafkaException as error:
            refused = error.args[0].name()
    both = len({r.offset for r in held} & {r.offset for r in again})
    return (
        Observation("a member that was removed works on with the records that it has", both == 0 if held else None,
                    f"{both} of {IN_HAND} records are in the hands of two members", Part.OUTSIDE),
        Observation("a removed member cannot commit", bool(refused), refused or "its commit was accepted", Part.CONTROL),
    )  # fmt: skip


def more_members_than_partitions(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=3)
    with members(bench, [topic], 5) as joined:
        owned = [len(each) for each in assignments(joined, 3)]
    return Measurements.of(
        Observation(
            "5 members, 3 partitions", sorted(owned) == [0, 0, 1, 1, 1], f"partitions of each member: {owned}"
        )
    )


def crash_of_a_member(bench: Bench) -> Measurements:
    return Measurements.of(
        bench.observed(groups.group("range", "kill_worker"), "a member is killed, classic protocol"),
        bench.observed(
            groups.group("cooperative", "kill_worker"), "a member is killed, cooperative assignor"
        ),
    )


def strategies(bench: Bench) -> Measurements:
    """Let two members share two topics of 3 partitions, and compare the numbers of partitions that each gets."""
    topics = [bench.topic(partitions=3), bench.topic(partitions=3)]
    place = {name: number for number, name in enumerate(topics)}
    found: dict[str, list[list[tuple[int, int]]]] = {}
    ways: Mapping[str, Mapping[str, str]] = {
        "range": {"partition_assignment_strategy": "range"},
        "roundrobin": {"partition_assignment_strategy": "roundrobin"},
        "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
        "KIP-848 range": {"group_protocol": "consumer", "group_remote_assignor": "range"},
        "KIP-848 uniform": {"group_protocol": "consumer", "group_remote_assignor": "uniform"},
    }
    for name, settings in ways.items():
        with members(bench, topics, 2, **settings) as joined:
            owned = assignments(joined, 6)
        found[name] = sorted(sorted((place[topic], number) for topic, number in each) for each in owned)
    sizes = {name: sorted(map(len, owned), reverse=True) for name, owned in found.items()}
    shown = "; ".join(f"{name} {'+'.join(map(str, size))}" for name, size in sizes.items())
    return Measurements.of(
        Observation("range and round robin, two topics of three partitions, two members",
                    found["range"] != found["roundrobin"] and sizes["range"] == [4, 2] and sizes["roundrobin"] == [3, 3],
                    f"partitions of the members: {shown}"),
        Observation("the same with the consumer protocol",
                    sizes["KIP-848 range"] == [4, 2] and sizes["KIP-848 uniform"] == [3, 3],
                    "range gives each member the same partitions of both topics, uniform spreads them"),
    )  # fmt: skip


def every_group_gets_everything(bench: Bench) -> Measurements:
    """Three groups read while the leader is killed: each has to get every acked record."""
    topic = bench.topic(partitions=3)
    count = 3000
    got: dict[int, set[bytes]] = defaultdict(set)
    with ExitStack() as stack:
        readers = [stack.enter_context(bench.consumer()) for _ in range(3)]
        for reader in readers:
            reader.subscribe([topic])
        bench.send(topic, [{"value": b"%d" % n} for n in range(count // 2)], enable_idempotence=True)
        leader = bench.cluster.view().partitions(topic)[0].leader
        assert leader is not None
        rest = [{"value": b"%d" % n} for n in range(count // 2, count)]
        with killed_nodes(bench, [leader]):
            bench.send(topic, rest, enable_idempotence=True)
        for number, reader in enumerate(readers):
            got[number] = {r.value or b"" for r in bench.take(reader, count)}
    run = Scenario(
        name="claim-grp-observed",
        mode=Mode.AT_LEAST_ONCE,
        observed=True,
        schedule=once(Kill(), on=leader_of(0), after_s=0.5, hold_s=1.0),
    )
    return Measurements.of(
        Observation("three groups, the leader is killed", all(len(each) == count for each in got.values()),
                    f"{[len(each) for each in got.values()]} of {count} records"),
        bench.observed(run, "a group beside two readers outside of it, the leader is killed"),
    )  # fmt: skip


def auto_commit(bench: Bench) -> Measurements:
    stored_later = replace(
        groups.group("auto_commit", "kill-before_work"), name="claim-grp-stored_after_work"
    )
    return Measurements.of(
        contradicted(
            provoked(
                bench,
                "stored_when_given",
                "a crash between poll and work, with the library's automatic store",
            )
        ),
        bench.observed(stored_later, "offsets are stored after the work", part=Part.OUTSIDE),
        avoided(bench, "stored_when_given", "the safe way of this hazard"),
    )


CLUSTERS = (ClusterNeeds(settings=groups.BROKERS_FOR_GROUPS),)

claims = (
    Claim(
        id="GRP-1", statement="In a group one partition has one reader at a time.", clusters=CLUSTERS,
        expected=Truth.CONDITIONAL, condition="no removed member works on with what it had read",
        setting="session.timeout.ms, max.poll.interval.ms", case=one_reader_at_a_time,
        why="The coordinator hands a partition over when its owner has given it back or was removed; a removed owner that "
        "has not noticed can still work, but not commit.",
    ),
    Claim(
        id="GRP-2", statement="With more members than partitions the rest are idle.", expected=Truth.TRUE, quick=True,
        setting="number of partitions", case=more_members_than_partitions, why="A partition has one owner in its group.",
        clusters=CLUSTERS,
    ),
    Claim(
        id="GRP-3", statement="When a member crashes, its partitions go to the others and nothing is missed.",
        expected=Truth.TRUE, setting="session.timeout.ms, commit after work", case=crash_of_a_member, clusters=CLUSTERS,
        why="The next owner begins at the committed offset; records after it are delivered again.",
    ),
    Claim(
        id="GRP-4", statement="Range and round robin assign partitions differently.", expected=Truth.TRUE, clusters=CLUSTERS,
        setting="partition.assignment.strategy, group.remote.assignor", case=strategies,
        why="Range divides each topic by itself, so the first members get more; round robin divides all partitions together.",
    ),
    Claim(
        id="GRP-5", statement="Every group gets every message.", expected=Truth.TRUE, clusters=CLUSTERS,
        setting="group.id", case=every_group_gets_everything, why="Groups have positions of their own.",
    ),
    Claim(
        id="GRP-6", statement="Auto commit is safe.", expected=Truth.FALSE, clusters=CLUSTERS,
        setting="enable.auto.offset.store", case=auto_commit,
        why="librdkafka stores an offset when it hands the record over, and may commit it before the record is worked on.",
    ),
)  # fmt: skip
