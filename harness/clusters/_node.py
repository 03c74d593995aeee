"""The nodes of a local cluster: a server process with all powers that are possible here."""

from __future__ import annotations

from harness import wire
from harness.clusters._clocked import Clocked
from harness.clusters._foldered import Foldered
from harness.clusters._holding import Holding
from harness.clusters._kafka import KafkaProcess
from harness.clusters._linked import Linked
from harness.clusters._server import ASK_LIMIT_S
from harness.clusters._starved import Starved


class LocalNode(Linked, Clocked, Starved, KafkaProcess):
    """A node; as it stands, a controller."""


class LocalBroker(Foldered, Holding, LocalNode):
    """A broker, also one that is a controller as well."""

    def has_coordinator(self, key: str, *, transaction: bool) -> bool:
        return wire.coordinator_error(self.control, key, transaction=transaction, timeout_s=ASK_LIMIT_S) == 0

    def metadata(self, *topics: str) -> wire.Metadata:
        return wire.metadata(self.control, topics, ASK_LIMIT_S)

    def _takes_part(self) -> bool:
        # A broker answers only after it has caught up with its own new registration, so when it lists itself
        # this is not what was left of its life before.
        return self.member.id in self.metadata().brokers
