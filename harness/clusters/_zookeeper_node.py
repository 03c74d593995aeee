"""The nodes of a cluster with ZooKeeper, as local processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness import tether, wire, wire_zookeeper
from harness.clusters._mesh import Port
from harness.clusters._node import LocalBroker, LocalNode
from harness.clusters._server import ASK_LIMIT_S
from harness.clusters._zookeeper import LEADER, RegisteredBroker, ZooKeeperServer

_ROOT = Path(__file__).resolve().parents[2]


class ZooKeeperNode(ZooKeeperServer, LocalNode):
    """A server of the ensemble, whose followers come through a gate; see harness.clusters._gate."""

    _gate: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        if self._gate is None:  # it outlives the server, as a proxy does
            places = [f"{self.address}:{port:d}" for port in (Port.ZOOKEEPER_GATE, Port.ZOOKEEPER_PEER)]
            self._gate = tether.spawn(
                [sys.executable, "-m", "harness.clusters._gate", *places],
                log=self.folder / "gate.log",
                cwd=_ROOT,
                pidfile=self.folder / "gate.pid",
            )
        super().launch()

    def closed(self) -> None:
        super().closed()
        if self._gate is not None:
            tether.end(self._gate)
            (self.folder / "gate.pid").unlink(missing_ok=True)
            self._gate = None

    def told_time_ms(self) -> int:
        """Changes are stamped by the leader, so only a leader tells its own time."""
        if self.standing().mode != LEADER:
            raise wire.WireError(f"{self.name} does not lead the ensemble, so it does not tell its time")
        return wire_zookeeper.leader_time_ms(self.client, ASK_LIMIT_S)


class ZooKeeperBroker(RegisteredBroker, LocalBroker):
    pass
