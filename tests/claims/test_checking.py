"""Claims are checked on as few clusters as their needs allow, and errors of onceproof leave them unproven."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from faults.kill import Kill
from harness.claims.bench import Bench
from harness.claims.checking import Workplace, check
from harness.claims.claim import (
    Claim,
    ClusterNeeds,
    Measurements,
    Observation,
    Part,
    PendingObservation,
    Truth,
)
from harness.cluster_options import Choice
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Mode
from harness.errors import ClusterError
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of

RECORDS = 20


def sent_and_read(bench: Bench) -> Measurements:
    """Send to the mock brokers and read back, with real clients."""
    topic = bench.topic(partitions=PARTITIONS)
    bench.send(topic, [{"value": b"%d" % n, "partition": 0} for n in range(RECORDS)])
    values = [record.value for record in bench.read(topic, RECORDS)]
    return Measurements.of(
        Observation("one partition", values == [b"%d" % n for n in range(RECORDS)], f"{len(values)} read")
    )


def failing(bench: Bench) -> Measurements:
    raise ClusterError("no broker answered")


def unanswered(bench: Bench) -> Measurements:
    """Ask mock brokers that are gone: the client's own error, not one of onceproof."""
    with bench.consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.committed([TopicPartition("t", 0)], timeout=0.1)
    raise AssertionError("nothing answers there")


def run_later(bench: Bench) -> Measurements:
    """Observations of two runs, the which are reconciled a moment later."""
    good: Future[str] = Future()
    threading.Timer(0.2, good.set_result, ["7 acked"]).start()
    return Measurements.of(
        PendingObservation(good, lambda text: Observation("a run", True, text)),
        Observation("at once", True, "", Part.OUTSIDE),
        PendingObservation(good, lambda text: Observation("against it", True, text)).then(
            lambda seen: replace(seen, holds=not seen.holds)
        ),
    )


def broken_later(bench: Bench) -> Measurements:
    broken: Future[str] = Future()
    broken.set_exception(ClusterError("the run broke"))
    return Measurements.of(PendingObservation(broken, lambda text: Observation("a run", True, text)))


class StartsNever(MemoryCluster):
    """Mock brokers of a machine that is too slow."""

    def start(self) -> None:
        raise ClusterError("the canary transaction failed")


class KeepsTopics(MemoryCluster):
    """Mock brokers that delete nothing."""

    def delete_topic(self, name: str) -> None:
        raise ClusterError(f"topic {name} cannot be deleted: no answer")


def not_here(bench: Bench) -> Measurements:
    bench.run(Scenario(name="a", mode=Mode.AT_LEAST_ONCE, schedule=once(Kill(), on=leader_of(0))))
    raise AssertionError("the mock brokers cannot be killed")


def claim(name: str, case: object, *clusters: ClusterNeeds, expected: Truth = Truth.TRUE) -> Claim:
    return Claim(
        id=name, statement="It holds.", expected=expected, why="", setting="", case=case,  # type: ignore[arg-type]
        clusters=clusters or (ClusterNeeds(),),
    )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    said: list[str] = []
    return Workplace(
        choice=Choice(), runs=tmp_path, seed=1, keep="all", versions={}, say=said.append,
        build=lambda choice, folder: MemoryCluster(folder),
    )  # fmt: skip


def test_trouble_leaves_a_claim_unproven_and_the_others_are_checked(place: Workplace) -> None:
    claims = [
        claim("A-1", failing), claim("A-2", not_here), claim("A-3", sent_and_read), claim("A-4", unanswered),
        claim("A-5", broken_later),
    ]  # fmt: skip
    answers = {answer.claim.id: answer for answer in check(claims, place)}
    assert {name: answer.truth for name, answer in answers.items()} == {
        "A-1": Truth.UNPROVEN, "A-2": Truth.UNPROVEN, "A-3": Truth.TRUE, "A-4": Truth.UNPROVEN, "A-5": Truth.UNPROVEN,
    }  # fmt: skip
    assert answers["A-5"].seen.observations[0].evidence == "the run broke"
    assert answers["A-1"].seen.observations[0].evidence == "no broker answered"
    assert answers["A-2"].seen.observations[0].evidence.startswith("not checked: ")
    starts = [line for line in place.say.__self__ if line.startswith("starting")]  # type: ignore[attr-defined]
    assert len(starts) == 1, "they share a cluster"


def test_runs_are_reconciled_beside_the_next_claims(place: Workplace) -> None:
    first, second = check([claim("A-1", run_later, expected=Truth.FALSE), claim("A-2", sent_and_read)], place)
    answers = {answer.claim.id: answer for answer in (first, second)}
    seen = answers["A-1"].seen.observations
    assert [(o.situation, o.holds, o.evidence) for o in seen] == [
        ("a run", True, "7 acked"),
        ("at once", True, ""),
        ("against it", False, "7 acked"),
    ]
    assert answers["A-1"].as_expected


def test_topics_that_cannot_be_deleted_are_reported_and_the_answer_stays(place: Workplace) -> None:
    keeping = replace(place, build=lambda choice, folder: KeepsTopics(folder))
    (answer,) = check([claim("A-1", sent_and_read)], keeping)
    assert answer.truth is Truth.TRUE
    said = place.say.__self__  # type: ignore[attr-defined]
    assert any("cannot be deleted: no answer" in line for line in said)


def test_a_cluster_that_does_not_start_leaves_only_its_own_claims_unproven(place: Workplace) -> None:
    def build(choice: Choice, folder: Path) -> MemoryCluster:
        return StartsNever(folder) if choice.combined else MemoryCluster(folder)

    claims = [claim("A-1", sent_and_read, ClusterNeeds(combined=True)), claim("A-2", sent_and_read)]
    answers = {answer.claim.id: answer for answer in check(claims, replace(place, build=build))}
    assert {name: answer.truth for name, answer in answers.items()} == {
        "A-1": Truth.UNPROVEN,
        "A-2": Truth.TRUE,
    }
    assert answers["A-1"].seen.observations[0].evidence == "the canary transaction failed"


def test_claims_share_a_cluster_by_what_it_is_and_not_by_its_label(place: Workplace) -> None:
    needs = [
        ClusterNeeds(),
        ClusterNeeds(combined=False, label="isolated"),
        ClusterNeeds(combined=True),
        ClusterNeeds(apart="A-4"),
    ]
    list(check([claim(f"A-{n}", sent_and_read, each) for n, each in enumerate(needs, 1)], place))
    starts = [line for line in place.say.__self__ if line.startswith("starting")]  # type: ignore[attr-defined]
    assert len(starts) == 3


def test_a_claim_about_two_clusters_has_the_observations_of_both(place: Workplace) -> None:
    one, other = ClusterNeeds(label="first"), ClusterNeeds(label="second", combined=True)
    (answer,) = check([claim("A-1", sent_and_read, one, other)], place)
    assert [o.situation for o in answer.seen.observations] == [
        "first: one partition",
        "second: one partition",
    ]
    assert answer.truth is Truth.TRUE


def test_a_bench_removes_its_topics_and_its_names_have_the_prefix(place: Workplace) -> None:
    names = []

    def case(bench: Bench) -> Measurements:
        names.extend([bench.name("group"), bench.name("group")])
        return Measurements.of(Observation("named", False, "", Part.STATED))

    (answer,) = check([claim("A-1", case, expected=Truth.FALSE)], place)
    assert answer.as_expected
    assert names == ["onceproof-claim-a-1-group-1", "onceproof-claim-a-1-group-2"]
