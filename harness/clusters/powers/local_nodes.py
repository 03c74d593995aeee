"""The nodes of a local cluster: server processes with all powers that are possible for them."""

from __future__ import annotations

from harness.clusters.powers.clock import Clocked
from harness.clusters.powers.cpu import Starved
from harness.clusters.powers.disk import DiskedProcess
from harness.clusters.powers.held_requests import Holding
from harness.clusters.powers.links import Linked
from harness.clusters.powers.log_folders import Foldered
from harness.clusters.powers.memory import SqueezedProcess
from harness.clusters.powers.version import Upgraded


class LocalNode(Linked, Clocked, Starved, SqueezedProcess, Upgraded):
    """A node; without additions, a controller."""


class LocalBroker(Foldered, DiskedProcess, Holding, LocalNode):
    """A broker, possibly combined with a controller."""
