"""The power over a broker's disk: DiskBreakable, and PowerLosable where its data folder is behind a file system of ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.clusters.base.broker import Broker
from harness.clusters.disk import byteman
from harness.clusters.disk.mount import Mount
from harness.clusters.processes.server_process import ServerProcess
from harness.contracts import DiskFault, DiskHarm
from harness.errors import ClusterError, FaultError
from harness.kafka import segments
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.fetch import fetch
from harness.kafka.topics import PROBE_TOPIC
from harness.waiting import wait_until

_PROBE_LIMIT_S = 10.0
_TOPIC_LIMIT_S = 20.0


class Disked(Broker):
    """By FUSE where the cluster has it (Options.fuse), else by Byteman (Options.byteman), which does without root.

    Slow reads are always by Byteman: Kafka sends records by sendfile, which the kernel serves from its page cache, and
    what was written lately is there. The file system below would be asked for old records only.
    """

    def restart(self) -> None:
        begun = not self.running()
        if begun and self.options.byteman:  # with a disk that refuses everything it would not come up
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
                f"the disk of {self.name} cannot be {how.harm}: its cluster was made without Options(byteman=True)"
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
        """How long an append, an fsync or a read takes: a round trip to a partition that is on this broker alone."""
        if harm is DiskHarm.SLOW_FSYNC:
            return _took_ms(self._append_and_fsync)
        if harm is DiskHarm.SLOW_READ:
            return _took_ms(
                lambda: fetch(self.control, PROBE_TOPIC, self._probe_partition, 0, _PROBE_LIMIT_S)
            )
        return self.produce_round_trip_ms()

    def produce_round_trip_ms(self) -> float:
        return _took_ms(lambda: self._append(PROBE_TOPIC, self._probe_partition))

    # PowerLosable

    def lose_power(self) -> Mapping[str, float]:
        """SIGKILL, and all content that was not fsynced is gone from the disk."""
        if not self.options.fuse:
            raise FaultError(
                f"{self.name} cannot lose power: its cluster was made without Options(fuse=True)"
            )
        self.kill()
        before = self._log_ends()
        lost = self._mount.lose()
        self._mount.end()  # as the machine would: nothing is left in caches
        after = self._log_ends()
        gone = {partition: end - after.get(partition, 0) for partition, end in before.items()}
        return {
            "bytes_lost": float(lost["bytes"]),
            "files_changed": float(lost["files"]),
            "records_lost": float(sum(gone.values())),
            "partitions_shortened": float(sum(1 for each in gone.values() if each > 0)),
        }

    @property
    def _probe_partition(self) -> int:
        return self.member.id - 1

    @cached_property
    def _mount(self) -> Mount:
        return Mount(self.folder, self.data)

    @cached_property
    def _breaks(self) -> dict[DiskHarm, DiskFault]:
        """What the disk does wrong, also while the processes that do it are down."""
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
        """Let the agent's orders be those that are wanted; a broker that is paused follows when it goes on."""
        if self.options.byteman:
            wanted = [how for how in self._breaks.values() if not self._by_fuse(how)]
            byteman.give(self.folder, wanted, PROBE_TOPIC)

    def _append(self, topic: str, partition: int) -> None:
        raw_client.produce(self.control, topic, partition, b"probe", timeout_s=_PROBE_LIMIT_S)

    def _append_and_fsync(self) -> None:
        self._append(self._flushed_topic, 0)

    @cached_property
    def _flushed_topic(self) -> str:
        """A topic on this broker alone whose every append waits for an fsync."""
        name = f"{PROBE_TOPIC}-flushed-{self.member.id}"
        self._make_topic(name, {"flush.messages": "1"})
        return name

    def _make_topic(self, name: str, config: Mapping[str, str] = {}) -> None:
        """With one partition, on this broker alone. Returns when it takes records."""
        all_config = {"min.insync.replicas": "1", **config}
        topic = NewTopic(name, 1, replica_assignment=[[self.member.id]], config=all_config)
        admin = self._admin()
        try:
            admin.create_topics([topic], request_timeout=_TOPIC_LIMIT_S)[name].result(_TOPIC_LIMIT_S * 2)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ClusterError(f"{name} cannot be made: {error.args[0].str()}") from error
        self._wait_takes(name)

    def _admin(self) -> AdminClient:
        access = self.security.settings if self.security is not None else {}
        place: dict[str, Any] = {"bootstrap.servers": "{}:{:d}".format(*self.control), "log_level": 0}
        return AdminClient({**place, **access})

    def _wait_takes(self, topic: str, partition: int = 0) -> None:
        wait_until(
            lambda: self._takes(topic, partition),
            _TOPIC_LIMIT_S,
            f"{self.name} does not serve {topic}-{partition}",
        )

    def _takes(self, topic: str, partition: int) -> bool:
        try:
            self._append(topic, partition)
        except raw_client.WireError:  # it has not opened the log yet
            return False
        return True

    def _log_ends(self) -> dict[str, int]:
        """Where the log of each partition ends on the disk, apart from Kafka's own topics."""
        folders = [path.parent for path in self.data.glob("**/*.log") if path.parent.name[:2] != "__"]
        return {folder.name: segments.search(folder, []).end for folder in set(folders)}


class DiskedProcess(Disked, ServerProcess):
    def wrapped(self, command: list[str | Path]) -> list[str | Path]:
        inner = super().wrapped(command)
        if not self.options.fuse:
            return inner
        outer = self._mount.inside(inner)
        self._mount.be(self._orders())  # if it was started anew, the disk is as bad as before
        return outer


def _took_ms(act: Callable[[], object]) -> float:
    begun = time.monotonic()
    act()
    return (time.monotonic() - begun) * 1000
