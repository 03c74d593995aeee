"""The power over the throughput of a container's disk: DiskThrottleable, by its control group.

Everything on the same disk as the broker's data is slowed, its metadata too. The engine cannot set such a limit on a running
container, so it is written into the control group, and again into the new group after a restart of the container.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from harness.clusters.containers.container import KafkaContainer
from harness.clusters.powers.disk import Disked
from harness.contracts import DiskHarm
from harness.errors import ClusterError, FaultError
from harness.kafka.protocol.fetch import fetch
from harness.machine.cgroup import home_of
from harness.machine.cgroup_io import Io, IoGroup, disk_of

_KB = 1024
_PROBE_LIMIT_S = 20.0
_IO = {DiskHarm.SLOW_FSYNC: Io.WRITE, DiskHarm.SLOW_READ: Io.READ}


class Throttled(Disked, KafkaContainer):
    def restart(self) -> None:
        """Start at full speed and throttle afterwards: at the rate, Java and the logs would not load in time."""
        began = not self.running()
        super().restart()
        if began:
            for harm, rate_kb_s in self._rates_kb_s.items():
                self._io_group().limit(_IO[harm], rate_kb_s * _KB)

    def residue(self) -> list[str]:
        left = super().residue()
        if self._has_been_throttled and self.running():
            group = self._io_group()
            left += [f"{io}s of {self.name} are throttled" for io in Io if group.limited(io) is not None]
        return left

    # DiskThrottleable

    def throttle_disk(self, harm: DiskHarm, rate_kb_s: int) -> str:
        if harm not in _IO:
            raise FaultError(f"the disk of {self.name} cannot be {harm} by a rate: appends go to memory")
        if self.options.fuse:
            raise FaultError(
                f"the disk of {self.name} cannot be throttled: it is behind FUSE, where another process reads and writes"
            )
        group = self._io_group()
        self._has_been_throttled = True
        self._rates_kb_s[harm] = rate_kb_s
        group.limit(_IO[harm], rate_kb_s * _KB)
        return "blkio"

    def release_disk(self, harm: DiskHarm) -> None:
        if self._rates_kb_s.pop(harm, None) is None or not self.running():
            return
        try:
            self._io_group().limit(_IO[harm], None)
        except FaultError:
            if self.running():  # otherwise the limit has ended with its group
                raise

    def disk_rate_kb_s(self, harm: DiskHarm, size_kb: int) -> float:
        """Measure the append of one record with its fsync, or the fetch of a record that is no longer in memory."""
        offset, took_s = self.append_kb(size_kb)
        if harm is DiskHarm.SLOW_READ:
            begun = time.monotonic()
            self.fetch_from_disk([offset])
            took_s = time.monotonic() - begun
        return size_kb / took_s

    def append_kb(self, size_kb: int) -> tuple[int, float]:
        """Append one record of that size to a topic on this broker alone; return its offset and the seconds it took."""
        access = self.security.settings if self.security is not None else {}
        place: dict[str, Any] = {"bootstrap.servers": "{}:{:d}".format(*self.control), "log_level": 0}
        producer = Producer({**place, **access, "acks": "all", "linger.ms": 0})
        self._sent(producer, b"so that it is connected")
        begun = time.monotonic()
        offset = self._sent(producer, os.urandom(size_kb * _KB))
        return offset, time.monotonic() - begun

    def _sent(self, producer: Producer, value: bytes) -> int:
        reports: list[tuple[KafkaError | None, int | None]] = []

        def note(error: KafkaError | None, message: Message) -> None:
            reports.append((error, message.offset()))

        producer.produce(self._flushed_topic, value, partition=0, on_delivery=note)
        producer.flush(_PROBE_LIMIT_S)
        error, offset = reports[0] if reports else ("no answer", None)
        if error is not None or offset is None:
            raise ClusterError(f"{self.name} did not accept a record of {len(value)} bytes: {error}")
        return offset

    def fetch_from_disk(self, offsets: Sequence[int]) -> None:
        """Fetch the records at these offsets from the disk, none of them from memory."""
        self._forget()
        for offset in offsets:
            fetch(self.control, self._flushed_topic, 0, offset, _PROBE_LIMIT_S)

    def _forget(self) -> None:
        """Make the kernel drop the probe's log from its page cache; all of it is on the disk.

        In the container's view: behind FUSE its page cache differs from this machine's cache of the files below.
        """
        inside = Path(f"/proc/{self.contained.pid()}/root", *self.data.parts[1:])
        for file in (inside / f"{self._flushed_topic}-0").glob("*.log"):
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)

    def _io_group(self) -> IoGroup:
        pid = self.contained.pid()
        home = home_of(pid, "blkio") if pid is not None else None
        if home is None:
            why = "it does not run" if pid is None else "this kernel has no control group for that"
            raise FaultError(f"the disk of {self.name} cannot be throttled: {why}")
        return IoGroup(home, disk_of(self.data))

    _has_been_throttled = False

    @cached_property
    def _rates_kb_s(self) -> dict[DiskHarm, int]:
        """The wanted limits, also while the container is down."""
        return {}
