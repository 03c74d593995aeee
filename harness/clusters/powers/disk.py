"""The powers over a broker's disk: DiskBreakable, and PowerLosable where its data folder is behind FUSE."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from harness.clusters.base.broker import Broker, took_ms
from harness.clusters.base.composition import Power, Site, without
from harness.clusters.disk import byteman, mount
from harness.clusters.disk.mount import Mount
from harness.clusters.processes.server_process import ServerProcess
from harness.contracts import DiskBreakable, DiskFault, DiskHarm, PowerLosable
from harness.errors import FaultError
from harness.kafka import segments
from harness.kafka.topics import PROBE_TOPIC


class Disked(Power, Broker):
    """Breaks disks by FUSE if the cluster has it (Options.fuse), otherwise by Byteman (Options.byteman), without root."""

    gives: ClassVar[type] = DiskBreakable

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        return None if site.options.fuse or site.options.byteman else without("byteman=True")

    def restart(self) -> None:
        begun = not self.running()
        if begun and self.options.byteman:  # with a disk that refuses everything it would not start
            byteman.give(self.folder, [], PROBE_TOPIC)
        super().restart()
        if begun:  # the disk is as bad as before
            self._order()

    def residue(self) -> list[str]:
        left = super().residue()
        if self.options.fuse:
            left += [f"the disk of {self.name} is {harm}" for harm in self._mount.harms()]
        if self.options.byteman:
            left += [f"the disk of {self.name} is {harm} by Byteman" for harm in byteman.given(self.folder)]
        return left

    def closed(self) -> None:
        super().closed()
        if self.options.fuse:
            self._mount.end()

    # DiskBreakable

    def break_disk(self, how: DiskFault) -> str:
        by_fuse = self._by_fuse(how)
        if not by_fuse and not self.options.byteman:
            raise FaultError(
                f"the disk of {self.name} cannot be {how.harm}: its cluster was started without Options(byteman=True)"
            )
        self._breaks[how.harm] = how
        if by_fuse:
            self._mount.be(self._orders())
            return "fuse"
        self._order()
        return "byteman"

    def mend_disk(self, harm: DiskHarm | None = None) -> None:
        for each in [harm] if harm else list(self._breaks):
            self._breaks.pop(each, None)
        if self.options.fuse:
            self._mount.be(self._orders())
        self._order()

    def disk_latency_ms(self, harm: DiskHarm) -> float:
        """Measure an append or an fsync: a round trip to a partition that only this broker has."""
        if harm is DiskHarm.SLOW_FSYNC:
            return took_ms(lambda: self.append(self.flushed_topic, 0))
        return self.produce_round_trip_ms()

    @cached_property
    def _mount(self) -> Mount:
        return Mount(self.folder, self.data)

    @cached_property
    def _breaks(self) -> dict[DiskHarm, DiskFault]:
        """The wanted faults of the disk, also while the processes that cause them are down."""
        return {}

    def _by_fuse(self, how: DiskFault) -> bool:
        return self.options.fuse and how.harm is not DiskHarm.SLOW_READ

    def _orders(self) -> list[dict[str, object]]:
        return [
            {
                "harm": how.harm,
                "delay_ms": how.delay_ms,
                "prefixes": [how.topics_prefix, PROBE_TOPIC],
                "folder": how.folder,
            }
            for how in self._breaks.values()
            if self._by_fuse(how)
        ]

    def _order(self) -> None:
        """Write the wanted orders for the agent; a paused broker follows them when it resumes."""
        if self.options.byteman:
            wanted = [how for how in self._breaks.values() if not self._by_fuse(how)]
            byteman.give(self.folder, wanted, PROBE_TOPIC)


class DiskedProcess(Disked, ServerProcess):
    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        inner = super().wrapped(command)
        if not self.options.fuse:
            return inner
        outer = self._mount.inside(inner)
        self._mount.be(self._orders())  # after a restart of the mount, the disk is as bad as before
        return outer


class PowerLosing(Disked):
    """A broker with its data folder behind FUSE, which knows what was fsynced."""

    gives: ClassVar[type] = PowerLosable

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        return None if site.options.fuse else mount.trouble() or without("fuse=True")

    def lose_power(self) -> Mapping[str, float]:
        """Kill the broker, and drop all content that was not fsynced from the disk."""
        self.kill()
        before = self._log_ends()
        lost = self._mount.lose()
        self._mount.end()  # as after a power loss, nothing is left in caches
        after = self._log_ends()
        gone = {partition: end - after.get(partition, 0) for partition, end in before.items()}
        return {
            "bytes_lost": float(lost["bytes"]),
            "files_changed": float(lost["files"]),
            "records_lost": float(sum(gone.values())),
            "partitions_shortened": float(sum(1 for each in gone.values() if each > 0)),
        }

    def _log_ends(self) -> dict[str, int]:
        """Return the end offset of each partition's log on the disk, without internal topics."""
        folders = [path.parent for path in self.data.glob("**/*.log") if path.parent.name[:2] != "__"]
        return {folder.name: segments.search(folder, []).end for folder in set(folders)}
