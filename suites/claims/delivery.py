"""Claims about the three delivery modes."""

from __future__ import annotations

from tempfile import TemporaryFile

from confluent_kafka import TopicPartition

from harness.claims.bench import Bench
from harness.claims.claim import Claim, Measurements, Observation, Part, Truth
from harness.contracts import Mode
from suites.claims._runs import provoked
from suites.scenarios import matrix, pipelines

INPUTS = 50
LIMIT_S = 60.0


def at_most_once(bench: Bench) -> Measurements:
    """Check that losses are found and counted, and no duplicates, which at-most-once forbids."""
    return Measurements.of(
        bench.observed(
            matrix.crossed(Mode.AT_MOST_ONCE, "kill-leader"),
            "the leader dies: losses are counted, no duplicates",
        ),
        bench.observed(matrix.fault_free(Mode.AT_MOST_ONCE), "without a fault", Part.CONTROL),
    )


def at_least_once(bench: Bench) -> Measurements:
    return Measurements.of(
        bench.observed(
            matrix.crossed(Mode.AT_LEAST_ONCE, "kill-leader"), "the leader is killed: nothing is lost"
        ),
        bench.observed(
            matrix.crossed(Mode.AT_LEAST_ONCE, "sever-leader"), "the leader is cut off: nothing is lost"
        ),
        provoked(bench, "retry_duplicates", "answers are lost: records are there twice"),
    )


def exactly_once(bench: Bench) -> Measurements:
    situations = {
        "kill-after_produce": "a member is killed in its transaction",
        "fence": "a member is fenced",
        "zombie-after_produce": "a member sleeps through a rebalance and wakes up",
    }
    return Measurements.of(
        *(bench.observed(pipelines.pipeline(name), text) for name, text in situations.items()),
        _effect_outside(bench),
    )


def _effect_outside(bench: Bench) -> Observation:
    """Write a line to a file for each input and end before the commit: the next member begins with the same inputs."""
    source, output = bench.topic(partitions=1), bench.topic(partitions=1)
    group, identity = bench.name("group"), bench.name("transactional")
    bench.send(source, [{"value": b"%d" % number} for number in range(INPUTS)])
    with TemporaryFile() as file:
        for commits in (False, True):
            producer = bench.producer(transactional_id=identity)
            producer.init_transactions(LIMIT_S)  # ends the transaction of the previous member
            with bench.consumer(group_id=group, isolation_level="read_committed") as consumer:
                consumer.subscribe([source])
                inputs = bench.take(consumer, INPUTS)
                producer.begin_transaction()
                for record in inputs:
                    file.write(b"effect\n")
                    producer.produce(output, value=record.value)
                if commits:
                    at = [TopicPartition(source, 0, INPUTS)]
                    producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), LIMIT_S)
                    producer.commit_transaction(LIMIT_S)
        file.seek(0)
        effects = len(file.readlines())
    committed = len(bench.read(output, INPUTS + 1, 5.0, isolation_level="read_committed"))
    evidence = f"{INPUTS} inputs: {committed} records committed in Kafka, {effects} lines in the file"
    return Observation(
        "the effect is a line in a file; a member ends before its commit",
        effects == INPUTS if committed == INPUTS else None, evidence, Part.OUTSIDE,
    )  # fmt: skip


claims = (
    Claim(
        id="DEL-1", statement="At-most-once: no confirmation is awaited; messages may be lost, none is there twice.",
        expected=Truth.TRUE, setting="acks=0, commit before work", case=at_most_once,
        why="Nothing is ever sent or read a second time.",
    ),
    Claim(
        id="DEL-2", statement="At-least-once: confirmations and retries; nothing is lost, duplicates are possible.",
        expected=Truth.TRUE, setting="acks=all, retries, commit after work", case=at_least_once,
        why="A record whose answer is lost is sent again, and may be in the log already.",
    ),
    Claim(
        id="DEL-3", statement="Exactly-once by transactions: nothing is lost and nothing is there twice.",
        expected=Truth.CONDITIONAL, condition="all effects are records in Kafka",
        setting="transactional.id, isolation.level=read_committed", case=exactly_once,
        why="Output and input position are committed together; a transaction cannot take back what was done elsewhere.",
    ),
)  # fmt: skip
