"""Check every fault that has to work without root and without Docker, on a cluster started by this process.

Called by test_without_root as an ordinary user, as `python -m suites.harness_checks.faults._rootless FOLDER`; prints a line of JSON for
each fault: the fault, the way that was used, and the proofs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import Consumer, Producer

from faults.add_partitions import AddPartitions
from faults.delete_records import DeleteRecords
from faults.flaky_link import KINDS, FlakyLink
from faults.hold_requests import HoldRequests
from faults.kill import Kill
from faults.pause import Pause
from faults.reassign import Reassign
from faults.sever import SHAPES, Sever
from faults.short_retention import ShortRetention
from faults.skew_clock import SkewClock
from faults.slow_disk import SlowDisk
from faults.slow_link import SlowLink
from faults.starve import Starve
from faults.transfer_leadership import TransferLeadership
from harness.clusters.base.options import Options
from harness.clusters.local import LocalCluster
from harness.contracts import Fault, Lane, TopicSettings
from harness.targets import leader_of
from harness.testing.check_fault import check_fault
from suites.support.arena import TOPIC, BareArena

FAULTS: list[Fault] = [
    Kill(),
    Pause(),
    *(Sever(shape) for shape in SHAPES),
    SlowLink(),
    *(FlakyLink(kind) for kind in KINDS),
    HoldRequests(("Produce",)),
    SlowDisk(),
    SkewClock(),
    Starve(),
    TransferLeadership(),
    Reassign(),
    DeleteRecords(),
    ShortRetention(),
    AddPartitions(),
]
# Options that need root must not be used.
OPTIONS = Options(fuse=False, clocks=True, byteman=True)


@contextmanager
def in_use(arena: BareArena) -> Iterator[None]:
    """Write and read records all the time: faults need records to delete and requests to hold."""
    ended = threading.Event()
    servers = {"bootstrap.servers": arena.cluster.bootstrap_servers(Lane.PRODUCE), "log_level": 0}
    producer = Producer({**servers, "socket.timeout.ms": 3000})
    reading = {"group.id": arena.group, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 200}
    consumer = Consumer({**servers, **reading})
    consumer.subscribe([TOPIC])

    def work() -> None:
        while not ended.wait(0.02):
            with suppress(BufferError):
                producer.produce(TOPIC, b"x" * 100)
            producer.poll(0)
            consumer.poll(0)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.purge()
        consumer.close()


def main(folder: Path) -> None:
    settings = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
    with LocalCluster(folder, options=OPTIONS, broker_settings=settings) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        arena = BareArena(cluster)
        with in_use(arena):
            for fault in FAULTS:
                checked = check_fault(fault, arena, leader_of().pick(arena))
                report = {"uid": os.geteuid(), "way": checked.bite.way, "bite": checked.bite.proof}
                print(
                    json.dumps({"fault": str(fault), **report, "healing": checked.healing.proof}), flush=True
                )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
