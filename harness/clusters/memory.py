"""Brokers in memory, only for testing the harness itself: librdkafka's mock brokers, in a separate process.

Clients, workers and wire protocol are real; no Java is needed and a start takes a fraction of a
second. It keeps no transaction markers, so its read_committed readers see aborted records; a run on it never
says anything about Kafka. To see it lose, repeat and reorder, read it with the client `lying`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any, Self

from harness.clusters.base.log_marks import LogMarks
from harness.clusters.base.started import StartedByWith
from harness.contracts import BrokerPlace, ClusterDescription, Lane, Node, PartitionState, TopicSettings
from harness.errors import ClusterError, UsageError
from harness.processes import child_process
from harness.waiting import wait_until

if TYPE_CHECKING:
    from harness.cluster_options import Choice

PARTITIONS = 4  # chosen by the mock brokers for a new topic
ROOT = Path(__file__).resolve().parents[2]


class MemoryCluster(StartedByWith):
    def __init__(self, folder: Path, *, brokers: int = 3) -> None:
        self.folder, self._brokers = folder, brokers
        self._process: Popen[bytes] | None = None
        self._bootstrap = ""
        self._log_marks = LogMarks()
        self._steps_s: dict[str, float] = {}

    @classmethod
    def chosen(cls, _choice: Choice, folder: Path) -> Self:
        """Return the cluster, not started; it has no options."""
        return cls(folder)

    def start(self) -> None:
        begun = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        address = self.folder / "bootstrap.json"
        address.unlink(missing_ok=True)
        self._process = child_process.spawn(
            [sys.executable, "-m", "harness.clusters.memory", str(address), str(self._brokers)],
            log=self.folder / "memory.log",
            cwd=ROOT,
            env=dict(os.environ),
            pidfile=self.folder / "memory.pid",
        )
        wait_until(address.exists, 20.0, f"no mock brokers; see {self.folder / 'memory.log'}")
        self._bootstrap = json.loads(address.read_text(encoding="ascii"))
        self._steps_s = {"ready": round(time.monotonic() - begun, 2)}

    def stop(self) -> None:
        if self._process is not None:
            child_process.end(self._process)

    def bootstrap_servers(self, lane: Lane) -> str:
        if not self._bootstrap:
            raise ClusterError("the memory cluster is not running")
        return self._bootstrap

    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        return {}

    def nodes(self) -> Sequence[Node]:
        return ()

    def view(self) -> Self:
        return self

    def partitions(self, topic: str) -> Sequence[PartitionState]:
        return ()

    def active_controller(self) -> str:
        raise ClusterError("mock brokers have no controller")

    def controllers(self) -> Sequence[str]:
        return ()

    def coordinator(self, key: str, *, transaction: bool) -> str | None:
        return None

    def registered_brokers(self) -> Sequence[str]:
        return ()

    def broker_places(self) -> Mapping[str, BrokerPlace]:
        return {}

    def produce_round_trip_ms(self, broker: str) -> float:
        raise ClusterError("mock brokers have no probe topic")

    def create_topic(self, name: str, settings: TopicSettings) -> None:
        """Request the topic's metadata: mock brokers create a topic when it is first requested."""
        if settings.partitions != PARTITIONS:
            raise UsageError(
                f"the memory cluster's topics have {PARTITIONS} partitions, not {settings.partitions}"
            )
        from confluent_kafka.admin import AdminClient

        AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0}).list_topics(name, timeout=10)

    def delete_topic(self, name: str) -> None:
        """Do nothing: mock brokers cannot delete a topic; it ends with the process."""

    def begin_logs(self) -> None:
        self._log_marks = LogMarks({"memory": self.folder / "memory.log"})

    def collect_logs(self, into: Path) -> None:
        self._log_marks.copy({"memory": self.folder / "memory.log"}, into)

    def residue(self) -> Sequence[str]:
        return ()

    def describe(self) -> ClusterDescription:
        more = {"brokers": self._brokers, "controllers": 0, "combined": False}
        return ClusterDescription("memory", self._steps_s, mock=True, more=more)


def serve(address: Path, brokers: int) -> None:
    """Run the mock brokers until killed."""
    import signal

    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": "-", "test.mock.num.brokers": brokers, "log_level": 0})
    known = producer.list_topics(timeout=10).brokers.values()
    draft = address.with_suffix(".part")
    draft.write_text(json.dumps(",".join(f"{b.host}:{b.port}" for b in known)), encoding="ascii")
    draft.replace(address)
    signal.pause()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))

cluster_class = MemoryCluster
