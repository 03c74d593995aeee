"""The nodes of a cluster with ZooKeeper, as local processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.clusters.ensemble.server import RegisteredBroker, ZooKeeperServer
from harness.clusters.links.mesh import Port
from harness.clusters.powers.local_nodes import LocalBroker, LocalNode
from harness.processes import child_process

_ROOT = Path(__file__).resolve().parents[3]


class ZooKeeperNode(ZooKeeperServer, LocalNode):
    """A server of the ensemble, with a gate for its followers; see harness.clusters.links.follower_gate."""

    _gate: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        if self._gate is None:  # the gate outlives the server, like a proxy
            places = [f"{self.address}:{port:d}" for port in (Port.ZOOKEEPER_GATE, Port.ZOOKEEPER_PEER)]
            self._gate = child_process.spawn(
                [sys.executable, "-m", "harness.clusters.links.follower_gate", *places],
                log=self.folder / "gate.log",
                cwd=_ROOT,
                pidfile=self.folder / "gate.pid",
            )
        super().launch()

    def closed(self) -> None:
        super().closed()
        if self._gate is not None:
            child_process.end(self._gate)
            (self.folder / "gate.pid").unlink(missing_ok=True)
            self._gate = None


class ZooKeeperBroker(RegisteredBroker, LocalBroker):
    pass
