"""ZooKeeper servers and the brokers that register with them, as processes or in containers, and the view of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harness.clusters.base.broker import Broker
from harness.clusters.base.load import ask_for_more
from harness.clusters.base.server import ASK_LIMIT_S, Server
from harness.clusters.base.view import LocalView, ask_all
from harness.clusters.links.dialects import ZOOKEEPER
from harness.clusters.links.mesh import Port
from harness.errors import ClusterError
from harness.kafka.protocol import raw_client, zookeeper
from harness.waiting import wait_until

LEADER, FOLLOWER = "leader", "follower"
_FORGOTTEN_LIMIT_S = 60.0


class ZooKeeperServer(Server):
    """A server of the ensemble; it takes part while it leads or follows."""

    @property
    def client(self) -> raw_client.Address:
        return (self.address, Port.ZOOKEEPER)

    def standing(self) -> zookeeper.ServerStanding:
        return zookeeper.standing(self.client, ASK_LIMIT_S)

    def keep_busy(self, for_s: float) -> None:
        ask_for_more(self.client, for_s, ZOOKEEPER)

    def reported_time_ms(self) -> int:
        """Return the server's time. The leader stamps changes, so only a leader reports its own time."""
        if self.standing().mode != LEADER:
            raise raw_client.WireError(
                f"{self.name} does not lead the ensemble, so it does not report its time"
            )
        return zookeeper.leader_time_ms(self.client, ASK_LIMIT_S)

    def _takes_part(self) -> bool:
        return self.standing().mode in (LEADER, FOLLOWER)


class RegisteredBroker(Broker):
    """A broker that is registered with ZooKeeper."""

    ensemble: Sequence[ZooKeeperServer] = ()

    def restart(self) -> None:
        if not self.running():  # the registration outlives a dead broker, and a second one is refused
            wait_until(
                self._forgotten, _FORGOTTEN_LIMIT_S, f"ZooKeeper still has the registration of {self.name}"
            )
        super().restart()

    def _forgotten(self) -> bool:
        path = f"/brokers/ids/{self.member.id}"
        answers = ask_all(self.ensemble, lambda node: zookeeper.exists(node.client, path, ASK_LIMIT_S))
        return bool(answers) and not any(answers.values())


class ZooKeeperView(LocalView):
    def __init__(self, nodes: Sequence[Server]) -> None:
        super().__init__(nodes)
        self._ensemble = [node for node in nodes if isinstance(node, ZooKeeperServer)]

    def active_controller(self) -> str:
        """Return the controller that most of the answering brokers name; they learn it from the controller itself."""
        answers = ask_all(self._brokers, lambda broker: broker.metadata().controller)
        named = Counter(node for node in answers.values() if node >= 0).most_common(1)
        if not named:
            raise ClusterError("no broker knows an active controller")
        return self._names[named[0][0]]

    def controllers(self) -> Sequence[str]:
        return [broker.name for broker in self._brokers]

    def zookeepers(self) -> Mapping[str, str]:
        """Return the mode that each server reports; of two leaders, only the one with the later epoch counts."""
        answers = ask_all(self._ensemble, ZooKeeperServer.standing)
        last = max((answer.epoch for answer in answers.values() if answer.mode == LEADER), default=-1)
        modes = {
            name: "" if answer.mode == LEADER and answer.epoch < last else answer.mode
            for name, answer in answers.items()
        }
        return {node.name: modes.get(node.name, "") for node in self._ensemble}
