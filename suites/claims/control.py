"""Claims about controllers, ZooKeeper, elections and numbers of partitions."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewPartitions

from faults.kill import Kill
from harness.claims.bench import Bench, observation
from harness.claims.claim import Claim, ClusterNeeds, Curve, Measurements, Observation, Truth
from harness.contracts import Mode
from harness.errors import ClusterError, WaitTimeout
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import active_controller, leader_of
from harness.waiting import wait_until
from suites.claims._runs import killed_nodes

LIMIT_S = 60.0
NO_ELECTION_S = 10.0  # brokers' sessions are 3 s here: with a quorum, a dead leader is replaced within 5 s
SIZES = (10, 100, 1000)  # partitions
ISOLATED = ClusterNeeds(combined=False, label="isolated controllers")
COMBINED = ClusterNeeds(combined=True, label="combined nodes")
ZOOKEEPER = ClusterNeeds(kind="zookeeper", label="ZooKeeper")


def another_controller(bench: Bench) -> Measurements:
    killed = Scenario(
        name="claim-ctl-controller",
        mode=Mode.AT_LEAST_ONCE,
        schedule=once(Kill(), on=active_controller(), after_s=0.5, hold_s=1.0),
    )
    before = bench.cluster.view().active_controller()
    with killed_nodes(bench, [before]):
        took_s = _seconds_until(lambda: _controller(bench) not in ("", before))
    return Measurements.of(
        Observation("another one takes over", took_s is not None,
                    f"after {before} was killed, in {took_s:.1f} s" if took_s is not None else f"{before}: none in {LIMIT_S:g} s"),
        bench.observed(killed, "the active controller is killed under load: nothing acked is lost"),
    )  # fmt: skip


def _controller(bench: Bench) -> str:
    """Return the active controller; empty while there is none."""
    try:
        return bench.cluster.view().active_controller()
    except ClusterError:
        return ""


def _seconds_until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> float | None:
    """Return how long it took until the condition held; None: longer than the limit."""
    began = time.monotonic()
    try:
        wait_until(condition, limit_s, "", every_s=0.05)
    except WaitTimeout:
        return None
    return time.monotonic() - began


def _zookeepers(bench: Bench) -> list[str]:
    """Return the servers of the ensemble, the leader last: others can be killed without an election of their own."""
    modes = bench.cluster.view().zookeepers()  # type: ignore[attr-defined]  # the claim's cluster has an ensemble
    return sorted(modes, key=lambda name: modes[name] == "leader")


def majority_of_zookeepers(bench: Bench) -> Measurements:
    servers, topic = _zookeepers(bench), bench.topic(partitions=1)
    # The ZooKeeper servers come back before the broker: without a majority it cannot register.
    with ExitStack() as brokers, killed_nodes(bench, servers[:1]):
        one_down = _failover(bench, topic, LIMIT_S, brokers)
    _whole_again(bench, topic)
    with ExitStack() as brokers, killed_nodes(bench, servers[1:]):
        two_down = _failover(bench, topic, NO_ELECTION_S, brokers)
    _whole_again(bench, topic)
    return Measurements.of(
        Observation("one of three servers is down: elections work", one_down[0], one_down[1]),
        Observation("two of three are down: no elections", not two_down[0], two_down[1]),
        Observation("two of three are down: data goes on", two_down[2], two_down[3]),
    )


def _failover(bench: Bench, topic: str, limit_s: float, until: ExitStack) -> tuple[bool, str, bool, str]:
    """Write, then kill the leader: return whether another broker leads in time, and whether data went on before.

    The killed broker is started again when `until` ends.
    """
    acked = bench.send(topic, [{"value": b"data"} for _ in range(10)])
    leader = bench.cluster.view().partitions(topic)[0].leader
    assert leader is not None
    until.enter_context(killed_nodes(bench, [leader]))
    took_s = _seconds_until(
        lambda: bench.cluster.view().partitions(topic)[0].leader not in (None, leader), limit_s
    )
    now = f"no leader in {limit_s:g} s" if took_s is None else f"another leads after {took_s:.1f} s"
    return (
        took_s is not None,
        f"{leader} killed: {now}",
        len(acked) == 10,
        f"{len(acked)} of 10 records acked",
    )


def _whole_again(bench: Bench, topic: str) -> None:
    wait_until(lambda: _all_in_sync(bench, topic), LIMIT_S, f"{topic}: replicas are not in sync again")


def without_zookeeper(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=1)
    bench.send(topic, [{"value": b"before"}])
    bench.read(
        topic, 1
    )  # the first group of a cluster makes the brokers create __consumer_offsets, which needs ZooKeeper
    with killed_nodes(bench, _zookeepers(bench)):
        acked = bench.send(topic, [{"value": b"%d" % n} for n in range(500)])
        read = bench.read(topic, 501)
    return Measurements.of(
        Observation("all ZooKeeper servers are down: producing goes on", len(acked) == 500, f"{len(acked)} of 500 records acked"),
        Observation("all ZooKeeper servers are down: consuming goes on", len(read) == 501, f"{len(read)} of 501 records read by a new group"),
    )  # fmt: skip


def followers_take_over(bench: Bench) -> Measurements:
    run = bench.run(
        Scenario(
            name="claim-ctl-leader",
            mode=Mode.AT_LEAST_ONCE,
            schedule=once(Kill(), on=leader_of(0), after_s=0.5, hold_s=1.0),
        )
    )
    longest = run.reconciled["unavailable_s_max"]
    shown = observation(run, f"the leader is killed under load; the longest pause was {longest} s")
    return Measurements.of(shown)


def cost_of_partitions(bench: Bench) -> Measurements:
    """Measure the seconds from the kill of a broker until each partition that it led has another leader, by number of partitions."""
    points = []
    for size in SIZES:
        topic = bench.topic(partitions=size)
        victim = bench.cluster.view().partitions(topic)[0].leader
        assert victim is not None
        led = sum(state.leader == victim for state in bench.cluster.view().partitions(topic))

        def moved(name: str = topic, dead: str = victim) -> bool:
            return all(s.leader not in (None, dead) for s in bench.cluster.view().partitions(name))

        with killed_nodes(bench, [victim]):
            took_s = _seconds_until(moved, 2 * LIMIT_S)
            started = time.monotonic()
        ready_s = _seconds_until(lambda name=topic: _all_in_sync(bench, name), 4 * LIMIT_S)  # type: ignore[misc]
        if took_s is None or ready_s is None:
            return Measurements.of(
                Observation(f"{size} partitions", None, f"not moved or not in sync in {4 * LIMIT_S:g} s")
            )
        points.append((size, led, took_s, time.monotonic() - started))
    failover = tuple((float(size), round(took_s, 2)) for size, _, took_s, _ in points)
    restart = tuple((float(size), round(back_s, 2)) for size, _, _, back_s in points)
    numbers = ", ".join(f"{size}: {took:.1f} s and {back:.1f} s" for size, _, took, back in points)
    return Measurements.of(
        Observation("from the start of a broker until all replicas are in sync", restart[-1][1] > restart[0][1],
                    f"failover and restart by partitions: {numbers}"),
        curves=(Curve("partitions", "s from the kill until all have leaders", failover),
                Curve("partitions", "s from the restart until all replicas are in sync", restart)),
    )  # fmt: skip


def _all_in_sync(bench: Bench, topic: str) -> bool:
    return all(len(s.in_sync) == len(s.replicas) for s in bench.cluster.view().partitions(topic))


def removing_partitions(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=3)
    admin = bench.admin()  # kept in a variable: its requests end with it
    asked = admin.create_partitions([NewPartitions(topic, 2)])[topic]
    try:
        asked.result(30.0)
        code, text = KafkaError.NO_ERROR, "accepted"
    except KafkaException as error:
        code, text = error.args[0].code(), error.args[0].str()
    left = len(bench.cluster.view().partitions(topic))
    answered = code >= 0  # the others are errors of the client, not answers of a broker
    refused = code == KafkaError.INVALID_PARTITIONS and left == 3
    return Measurements.of(
        Observation(
            "fewer partitions are refused with an error",
            refused if answered else None,
            f"2 instead of 3: {text}; the topic has {left}",
        )
    )


claims = (
    Claim(
        id="CTL-1", statement="One node is the controller; if it dies another takes over and nothing acked is lost.",
        expected=Truth.TRUE, setting="controller.quorum.voters; zookeeper.connect", case=another_controller,
        why="The quorum (or ZooKeeper) elects another one; data does not pass through the controller.",
        clusters=(ISOLATED, COMBINED, ZOOKEEPER),
    ),
    Claim(
        id="CTL-2", statement="A ZooKeeper ensemble of n works while (n+1)/2 servers are up.", expected=Truth.TRUE,
        setting="number of servers", case=majority_of_zookeepers, clusters=(ZOOKEEPER,),
        why="A majority decides; for even n it is n/2 + 1, so an even number adds a server and no safety.",
    ),
    Claim(
        id="CTL-3", statement="Clients do not talk to ZooKeeper.", expected=Truth.TRUE, setting="no setting",
        case=without_zookeeper, clusters=(ZOOKEEPER,),
        why="Producing and consuming go on without it, until a leader or coordinator has to be elected.",
    ),
    Claim(
        id="CTL-4", statement="A follower takes over a partition when its leader dies.", expected=Truth.TRUE, quick=True,
        setting="broker.session.timeout.ms", case=followers_take_over,
        why="The controller notices after the session timeout and makes an in-sync replica the leader.",
    ),
    Claim(
        id="CTL-5", statement="Partitions are not free: start and failover take longer with more of them.",
        expected=Truth.TRUE, setting="number of partitions", case=cost_of_partitions, clusters=(ClusterNeeds(apart="CTL-5"),),
        why="Every partition is opened, fetched and elected for; the curve is the answer.",
    ),
    Claim(
        id="CTL-6", statement="Partitions cannot be removed.", expected=Truth.TRUE, quick=True, setting="no setting",
        case=removing_partitions, why="Removing one would remove its records; the brokers refuse it with a clear error.",
    ),
)  # fmt: skip
