"""The power over single log folders of a broker with several: FolderBreakable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewPartitions

from harness.clusters.base.composition import Site, without
from harness.clusters.powers.disk import Disked
from harness.contracts import FolderBreakable
from harness.errors import ClusterError
from harness.kafka.topics import PROBE_TOPIC

_MAKE_LIMIT_S = 20.0
_MOST_PROBES = 50  # the broker puts a new partition into the folder with the fewest: to fill each takes a few


class Foldered(Disked):
    gives: ClassVar[type] = FolderBreakable

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        return without("log_folders=2") if site.options.log_folders == 1 else super().why_not(site)

    def folders(self) -> Sequence[str]:
        return [folder.name for folder in self.log_folders]

    def partitions_in(self, folder: str) -> Collection[str]:
        (place,) = [path for path in self.log_folders if path.name == folder]
        return {path.parent.name for path in place.glob("*/*.log")}

    def append_to(self, folder: str) -> None:
        self.append(self._folders_topic, self._probe_in(folder))

    @cached_property
    def _folders_topic(self) -> str:
        """Return a topic on this broker alone with at least one partition in each log folder."""
        name = f"{PROBE_TOPIC}-folders-{self.member.id}"
        self.make_topic(name)
        count = 1
        while not all(self._probes_in(name, folder) for folder in self.folders()):
            if count == _MOST_PROBES:
                raise ClusterError(f"{self.name} puts no partition into one of its log folders")
            count += 1
            more = NewPartitions(name, count, replica_assignment=[[self.member.id]])
            admin = self.own_admin()
            try:
                admin.create_partitions([more])[name].result(_MAKE_LIMIT_S)
            except KafkaException as error:
                raise ClusterError(f"{name} cannot have {count} partitions: {error.args[0].str()}") from error
            self.wait_takes(name, count - 1)
        return name

    def _probe_in(self, folder: str) -> int:
        return min(self._probes_in(self._folders_topic, folder))

    def _probes_in(self, topic: str, folder: str) -> list[int]:
        there = [name.rpartition("-") for name in self.partitions_in(folder)]
        return [int(number) for name, _, number in there if name == topic]
