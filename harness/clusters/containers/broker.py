"""A node and a broker in a container, with probes that reach the container's disk."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from confluent_kafka import KafkaError, Message, Producer

from harness.clusters.base.broker import Broker
from harness.clusters.containers.container import KafkaContainer
from harness.clusters.containers.links import ContainerLinks
from harness.clusters.powers.links import Linked
from harness.contracts import FolderBreakable, Skewable, Upgradable
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.kafka.protocol.fetch import fetch

KB = 1024
_PROBE_LIMIT_S = 20.0
_RECORDS, _RECORD_KB = 20, 800  # more than twice what starve leaves by default


class ContainerNode(Linked, KafkaContainer):
    """A node; without additions, a controller."""

    links_of_cluster: ContainerLinks
    lacks: ClassVar[Mapping[type, str]] = {
        Skewable: "the clocks of containers cannot be set; use --cluster local",
        FolderBreakable: "brokers in containers have one log folder each; use --cluster local",
        Upgradable: "the version of a container cannot be changed; use --cluster local",
    }

    def launch(self) -> None:
        super().launch()
        self.links_of_cluster.renew(self.name)  # its cuts ended with its former network


class ContainerBroker(Broker, ContainerNode):
    """A broker, possibly combined with a controller."""

    def ask_for_memory(self, for_s: float) -> None:
        """Make the broker use memory, and read a log from the disk to fill the page cache.

        A restarted container has a new control group, where the page cache from before does not count: without this
        there would be no cache to limit, and only Java would wait for memory.
        A broker that is short of memory may be too slow for the limits of these requests: a FaultError says so.
        """
        try:
            while len(self._read_again) < _RECORDS:
                self._read_again.append(self.append_kb(_RECORD_KB)[0])
            self.fetch_from_disk(self._read_again)
        except (ClusterError, WaitTimeout) as error:
            raise FaultError(str(error)) from error
        super().ask_for_memory(for_s)

    @cached_property
    def _read_again(self) -> list[int]:
        return []

    def append_kb(self, size_kb: int) -> tuple[int, float]:
        """Append one record of that size to a topic on this broker alone; return its offset and the seconds it took."""
        access = self.security.settings if self.security is not None else {}
        place: dict[str, Any] = {"bootstrap.servers": "{}:{:d}".format(*self.control), "log_level": 0}
        producer = Producer({**place, **access, "acks": "all", "linger.ms": 0})
        self._sent(producer, b"so that it is connected")
        begun = time.monotonic()
        offset = self._sent(producer, os.urandom(size_kb * KB))
        return offset, time.monotonic() - begun

    def _sent(self, producer: Producer, value: bytes) -> int:
        reports: list[tuple[KafkaError | None, int | None]] = []

        def note(error: KafkaError | None, message: Message) -> None:
            reports.append((error, message.offset()))

        producer.produce(self.flushed_topic, value, partition=0, on_delivery=note)
        producer.flush(_PROBE_LIMIT_S)
        error, offset = reports[0] if reports else ("no answer", None)
        if error is not None or offset is None:
            raise ClusterError(f"{self.name} did not accept a record of {len(value)} bytes: {error}")
        return offset

    def fetch_from_disk(self, offsets: Sequence[int]) -> None:
        """Fetch the records at these offsets from the disk, none of them from memory."""
        self._forget()
        for offset in offsets:
            fetch(self.control, self.flushed_topic, 0, offset, _PROBE_LIMIT_S)

    def _forget(self) -> None:
        """Make the kernel drop the probe's log from its page cache; all of it is on the disk.

        In the container's view: behind FUSE its page cache differs from this machine's cache of the files below.
        """
        inside = Path(f"/proc/{self.contained.pid()}/root", *self.data.parts[1:])
        for file in (inside / f"{self.flushed_topic}-0").glob("*.log"):
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
