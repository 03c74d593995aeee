"""The nodes of a local cluster: a server process with all powers that are possible here."""

from __future__ import annotations

from harness.clusters._clocked import Clocked
from harness.clusters._disked import DiskedProcess
from harness.clusters._holding import Holding
from harness.clusters._kafka import KafkaProcess
from harness.clusters._linked import Linked
from harness.clusters._squeezed import SqueezedProcess
from harness.clusters._starved import Starved


class LocalNode(Linked, Clocked, Starved, SqueezedProcess, KafkaProcess):
    """A node; as it stands, a controller."""


class LocalBroker(DiskedProcess, Holding, LocalNode):
    """A broker, also one that is a controller as well."""
