"""The nodes of a cluster with ZooKeeper, and what its servers say when each is asked by itself."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import tether, wire, wire_zookeeper
from harness.clusters._mesh import Port
from harness.clusters._node import LocalBroker, LocalNode
from harness.clusters._server import ASK_LIMIT_S
from harness.clusters._speech import ZOOKEEPER
from harness.clusters._starved import ask_for_more
from harness.clusters._view import LocalView, ask_all
from harness.errors import ClusterError
from harness.waiting import wait_until

LEADER, FOLLOWER = "leader", "follower"
_ROOT = Path(__file__).resolve().parents[2]
_FORGOTTEN_LIMIT_S = 60.0


class ZooKeeperNode(LocalNode):
    """A server of the ensemble; it takes part while it leads or follows."""

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

    @property
    def client(self) -> wire.Address:
        return (self.address, Port.ZOOKEEPER)

    def standing(self) -> wire_zookeeper.Standing:
        return wire_zookeeper.standing(self.client, ASK_LIMIT_S)

    def told_time_ms(self) -> int:
        """Changes are stamped by the leader, so only a leader tells its own time."""
        if self.standing().mode != LEADER:
            raise wire.WireError(f"{self.name} does not lead the ensemble, so it does not tell its time")
        return wire_zookeeper.leader_time_ms(self.client, ASK_LIMIT_S)

    def keep_busy(self, for_s: float) -> None:
        ask_for_more(self.client, for_s, ZOOKEEPER)

    def _takes_part(self) -> bool:
        return self.standing().mode in (LEADER, FOLLOWER)


class ZooKeeperBroker(LocalBroker):
    """A broker that is registered with ZooKeeper."""

    ensemble: Sequence[ZooKeeperNode] = ()

    def restart(self) -> None:
        if not self.running():  # the registration of a dead one outlives it, and a second one is refused
            wait_until(
                self._forgotten, _FORGOTTEN_LIMIT_S, f"ZooKeeper still has the registration of {self.name}"
            )
        super().restart()

    def _forgotten(self) -> bool:
        path = f"/brokers/ids/{self.member.id}"
        answers = ask_all(self.ensemble, lambda node: wire_zookeeper.exists(node.client, path, ASK_LIMIT_S))
        return bool(answers) and not any(answers.values())


class ZooKeeperView(LocalView):
    def __init__(self, nodes: Sequence[LocalNode]) -> None:
        super().__init__(nodes)
        self._ensemble = [node for node in nodes if isinstance(node, ZooKeeperNode)]

    def active_controller(self) -> str:
        """As most of the answering brokers tell, who hear it from the controller itself."""
        answers = ask_all(self._brokers, lambda broker: broker.metadata().controller)
        told = Counter(node for node in answers.values() if node >= 0).most_common(1)
        if not told:
            raise ClusterError("no broker knows an active controller")
        return self._names[told[0][0]]

    def controllers(self) -> Sequence[str]:
        return [broker.name for broker in self._brokers]

    def zookeepers(self) -> Mapping[str, str]:
        """As each says of itself; of two that lead, only the one of the later epoch does."""
        answers = ask_all(self._ensemble, ZooKeeperNode.standing)
        last = max((told.epoch for told in answers.values() if told.mode == LEADER), default=-1)
        modes = {
            name: "" if told.mode == LEADER and told.epoch < last else told.mode
            for name, told in answers.items()
        }
        return {node.name: modes.get(node.name, "") for node in self._ensemble}
