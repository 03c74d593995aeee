"""Held requests on a real cluster: late ends of transactions, of live and of killed senders."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from faults.hold_requests import HoldRequests
from harness.campaign import Execute
from harness.clusters.local import LocalCluster
from harness.contracts import Lane, Mode, Node, RequestHolding, TopicSettings, Verdict
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import Target, every_broker, group_coordinator, leader_of, transaction_coordinator
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from suites.support.arena import TOPIC, BareArena

WITHOUT_WAITING = HoldRequests(("EndTxn",), within_s=0.1)  # for tests that send the request later


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareArena]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), controllers=1) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        yield BareArena(cluster, TOPIC)


def open_producer(arena: BareArena, **more: Any) -> Producer:
    settings = {
        "bootstrap.servers": arena.cluster.bootstrap_servers(Lane.PRODUCE),
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    return Producer({**settings, **more})


def committed(arena: BareArena) -> set[str]:
    """Return the values that a read_committed reader sees now."""
    consumer = Consumer(
        {
            "bootstrap.servers": arena.cluster.bootstrap_servers(Lane.CONTROL),
            "group.id": "look",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    seen: set[str] = set()
    ends: set[int | None] = set()
    try:
        consumer.subscribe([arena.topic])

        def at_every_end() -> bool:
            for record in consumer.consume(500, 0.5):
                if record.error() is None:
                    seen.add((record.value() or b"").decode())
                else:
                    ends.add(record.partition())
            return len(ends) == TopicSettings().partitions

        wait_until(at_every_end, 30.0, "the reader did not reach the ends")
    finally:
        consumer.close()
    return seen


def coordinator_of(arena: BareArena, transactional_id: str) -> list[Node]:
    name = wait_until(
        lambda: arena.cluster.view().coordinator(transactional_id, transaction=True), 20.0, "no coordinator"
    )
    return [node for node in arena.nodes() if node.name == name]


@contextmanager
def transactions(arena: BareArena, transactional_id: str) -> Iterator[None]:
    """Run small transactions all the time, whatever errors happen."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            producer = open_producer(
                arena, **{"transactional.id": transactional_id, "socket.timeout.ms": 2000}
            )
            try:
                producer.init_transactions(20)
                while not stop.is_set():
                    producer.begin_transaction()
                    producer.produce(arena.topic, b"load")
                    producer.commit_transaction(20)
            except KafkaException:
                continue  # fenced, or the end is unknown: continue with a new producer

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


@pytest.mark.conformance
def test_passes_the_check_of_its_contract(
    arena: BareArena, record_property: Callable[[str, object], None]
) -> None:
    with transactions(arena, "load"):
        checked = check_fault(HoldRequests(), arena, every_broker().pick(arena))
    record_property("bite", checked.bite.proof)
    record_property("healing", checked.healing.proof)
    print(f"\n{checked.bite} | {checked.healing}")


@pytest.mark.conformance
def test_other_requests_are_not_held(arena: BareArena) -> None:
    """The proxy is in place, and a request of another kind passes."""
    nodes = leader_of(0).pick(arena)
    producer = open_producer(arena)
    with HoldRequests(("EndTxn",), within_s=2.0).hold(arena, nodes) as bite:
        producer.produce(TOPIC, b"plain", partition=0)
        assert producer.flush(20) == 0, "other requests pass"
        assert not bite.bit, bite.proof
    assert HoldRequests().healed(arena, nodes).healed
    assert arena.cluster.residue() == []


@pytest.mark.conformance
def test_a_late_end_commits_the_transaction_of_a_patient_sender(arena: BareArena) -> None:
    producer = open_producer(arena, **{"transactional.id": "patient", "socket.timeout.ms": 60000})
    producer.init_transactions(30)
    nodes = coordinator_of(arena, "patient")
    with WITHOUT_WAITING.hold(arena, nodes):
        producer.begin_transaction()
        producer.produce(TOPIC, b"patient", partition=0)
        with pytest.raises(KafkaException) as raised:
            producer.commit_transaction(2)
        assert raised.value.args[0].retriable(), "the end is still unknown"
        check_held(arena, nodes, b"patient")
    healing = WITHOUT_WAITING.healed(arena, nodes)
    print(f"\n{healing}")
    assert healing.healed, healing.proof
    assert healing.measured["senders_gone"] == 0
    producer.commit_transaction(20)
    assert "patient" in committed(arena)
    assert arena.cluster.residue() == []


SENDER = """
import sys
from confluent_kafka import KafkaException, Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "killed", "log_level": 0})
producer.init_transactions(30)
print("ready", flush=True)
sys.stdin.readline()
producer.begin_transaction()
producer.produce(sys.argv[2], b"killed", partition=0)
try:
    producer.commit_transaction(2)
    print("committed", flush=True)
except KafkaException as problem:
    print(problem.args[0].name(), flush=True)
sys.stdin.read()
"""


@pytest.mark.conformance
def test_a_late_end_commits_the_transaction_of_a_killed_sender(arena: BareArena) -> None:
    words = [sys.executable, "-c", SENDER, arena.cluster.bootstrap_servers(Lane.PRODUCE), TOPIC]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdin is not None
        assert sender.stdout is not None
        try:
            assert sender.stdout.readline() == "ready\n"
            nodes = coordinator_of(arena, "killed")
            holder = nodes[0]
            assert isinstance(holder, RequestHolding)
            with WITHOUT_WAITING.hold(arena, nodes):
                sender.stdin.write("go\n")
                sender.stdin.flush()
                assert sender.stdout.readline() == "_TIMED_OUT\n"
                check_held(arena, nodes, b"killed")
                sender.kill()
                sender.wait()
                wait_until(lambda: holder.held_requests()["senders_gone"], 10.0, "the connection stays")
                assert "killed" not in committed(arena)
        finally:
            sender.kill()
    healing = WITHOUT_WAITING.healed(arena, nodes)
    print(f"\n{healing}")
    assert healing.healed, healing.proof
    assert healing.measured["answered"] >= 1
    wait_until(lambda: "killed" in committed(arena), 20.0, "the late end had no effect")
    assert arena.cluster.residue() == []


@pytest.mark.conformance
@pytest.mark.parametrize("late", [True, False], ids=["late", "in-time"])
def test_a_late_end_ends_the_next_transaction(arena: BareArena, late: bool) -> None:
    """Hazard A22: the client asks again on a new connection; the first request then ends the next transaction."""
    name = f"next-{late}"
    producer = open_producer(arena, **{"transactional.id": name, "socket.timeout.ms": 3000})
    producer.init_transactions(30)
    nodes = coordinator_of(arena, name)
    with ExitStack() as held:
        if late:
            held.enter_context(WITHOUT_WAITING.hold(arena, nodes))
        producer.begin_transaction()
        producer.produce(TOPIC, f"{name} first".encode(), partition=0)
        producer.commit_transaction(30)  # the library asks again after 3 s and reports success
        producer.begin_transaction()
        producer.produce(TOPIC, f"{name} aborted".encode(), partition=0)
        assert producer.flush(20) == 0
    producer.produce(TOPIC, f"{name} aborted too".encode(), partition=1)
    assert producer.flush(20) == 0
    producer.abort_transaction(30)
    seen = {value for value in committed(arena) if value.startswith(name)}
    assert seen == {f"{name} first"} | ({f"{name} aborted"} if late else set())


def check_held(arena: BareArena, nodes: Sequence[Node], value: bytes) -> None:
    """Check that only the end is held: other connections work, the transaction is open."""
    holder = nodes[0]
    assert isinstance(holder, RequestHolding)
    state = holder.held_requests()
    assert (state["connections"], state["delivered"]) == (1, 0)
    assert state["requests"] >= 1
    beside = open_producer(arena)
    for partition in range(TopicSettings().partitions):
        beside.produce(TOPIC, b"beside " + value, partition=partition)
    assert beside.flush(20) == 0, "other connections work"
    assert value.decode() not in committed(arena), "the transaction is open"


HELD_IN_RUNS: list[tuple[Mode, HoldRequests, Target]] = [
    (Mode.AT_LEAST_ONCE, HoldRequests(("Produce",)), leader_of(0)),
    (Mode.IDEMPOTENT, HoldRequests(("Produce",)), leader_of(0)),
    (Mode.AT_LEAST_ONCE, HoldRequests(("OffsetCommit",), Lane.CONSUME), group_coordinator()),
    (Mode.EXACTLY_ONCE, HoldRequests(("AddPartitionsToTxn",)), transaction_coordinator(1)),
]


@pytest.mark.conformance
@pytest.mark.parametrize(("mode", "fault", "target"), HELD_IN_RUNS, ids=lambda each: str(each))
def test_late_requests_break_no_promise(
    execute: Execute,
    mode: Mode,
    fault: HoldRequests,
    target: Target,
    record_property: Callable[[str, object], None],
) -> None:
    schedule = once(fault, on=target, after_s=0.5, hold_s=6.0)  # longer than clients wait for an answer
    result = execute(Scenario(name=f"{mode}-{fault}-{target}", mode=mode, schedule=schedule))
    (window,) = result.reconciled["coverage"]["windows"]
    print(f"\n{window}")
    record_property("bite", window["proof"])
    assert result.verdict is Verdict.HELD, result.explain()
