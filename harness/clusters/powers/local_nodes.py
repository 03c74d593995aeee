"""The nodes of a local cluster: server processes, and the powers that they can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.clusters.base.broker import Broker
from harness.clusters.powers.clock import Clocked
from harness.clusters.powers.cpu import Starved
from harness.clusters.powers.disk import DiskedProcess, PowerLosing
from harness.clusters.powers.held_requests import Holding
from harness.clusters.powers.links import PeerLinked
from harness.clusters.powers.log_folders import Foldered
from harness.clusters.powers.memory import SqueezedProcess
from harness.clusters.powers.slow_reads import ReadSlowing
from harness.clusters.powers.version import Upgraded
from harness.clusters.processes.kafka_process import KafkaProcess
from harness.contracts import DiskThrottleable

# A process joins its memory group before its share of CPU time is limited again, so Starved comes first.
POWERS_OF_ZOOKEEPERS = (Clocked, Starved, SqueezedProcess)
POWERS_OF_CONTROLLERS = (*POWERS_OF_ZOOKEEPERS, Upgraded)
POWERS_OF_BROKERS = (ReadSlowing, Foldered, PowerLosing, DiskedProcess, Holding, *POWERS_OF_CONTROLLERS)


class LocalNode(PeerLinked, KafkaProcess):
    """A node; without additions, a controller."""

    lacks: ClassVar[Mapping[type, str]] = {
        DiskThrottleable: "only the disks of containers can have a limited throughput; use --cluster docker"
    }


class LocalBroker(Broker, LocalNode):
    """A broker, possibly combined with a controller."""
