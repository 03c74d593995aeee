"""The power over a broker's reads: ReadSlowable."""

from __future__ import annotations

from typing import ClassVar

from harness.clusters.base.broker import PROBE_LIMIT_S, took_ms
from harness.clusters.base.composition import Site, without
from harness.clusters.powers.disk import Disked
from harness.contracts import ReadSlowable
from harness.kafka.protocol.fetch import fetch
from harness.kafka.topics import PROBE_TOPIC


class ReadSlowing(Disked):
    """Slows reads by Byteman, with FUSE disks too: Kafka sends records by sendfile, which the kernel serves from its page cache.

    Recent records are there, so the FUSE file system would see reads of old records only.
    """

    gives: ClassVar[type] = ReadSlowable

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        return None if site.options.byteman else without("byteman=True")

    def read_latency_ms(self) -> float:
        """Measure a round trip to a partition that only this broker has."""
        return took_ms(lambda: fetch(self.control, PROBE_TOPIC, self.probe_partition, 0, PROBE_LIMIT_S))
