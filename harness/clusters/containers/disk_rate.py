"""The power over the throughput of a container's disk: DiskThrottleable, by its control group.

Everything on the same disk as the broker's data is slowed, its metadata too. The engine cannot set such a limit on a running
container, so it is written into the control group, and again into the new group after a restart of the container.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import ClassVar

from harness.clusters.base.composition import Power, Site
from harness.clusters.containers.broker import KB, ContainerBroker
from harness.contracts import DiskHarm, DiskThrottleable
from harness.errors import FaultError
from harness.machine import cgroup_io
from harness.machine.cgroup import home_of
from harness.machine.cgroup_io import Io, IoGroup, disk_of

_IO = {DiskHarm.SLOW_FSYNC: Io.WRITE, DiskHarm.SLOW_READ: Io.READ}


class Throttled(Power, ContainerBroker):
    gives: ClassVar[type] = DiskThrottleable

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        if site.options.fuse:
            return "their disks are behind FUSE, where another process reads and writes; start the cluster without Options(fuse=True)"
        return cgroup_io.trouble(site.folder)

    def restart(self) -> None:
        """Start at full speed and throttle afterwards: at the rate, Java and the logs would not load in time."""
        began = not self.running()
        super().restart()
        if began:
            for harm, rate_kb_s in self._rates_kb_s.items():
                self._io_group().limit(_IO[harm], rate_kb_s * KB)

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
        group = self._io_group()
        self._has_been_throttled = True
        self._rates_kb_s[harm] = rate_kb_s
        group.limit(_IO[harm], rate_kb_s * KB)
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
