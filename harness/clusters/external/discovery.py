"""The brokers and controllers of a user's cluster, as the cluster reports them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.clusters.external.commanded_powers import commanded
from harness.clusters.external.node import ASK_LIMIT_S, CommandedNode
from harness.clusters.external.power_commands import Commands, Powers
from harness.clusters.links.mesh import Member
from harness.errors import ClusterError
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.addresses import parse_list
from harness.kafka.protocol.security import Secured, Security


@dataclass(frozen=True)
class Finding:
    bootstrap: str
    security: Security | None
    powers: Powers | None
    report: Callable[[str], None]

    def reach(self) -> raw_client.Address:
        """Return the first server that answers; if none does, raise ClusterError with the first server's error."""
        problem: ClusterError | None = None
        for server in servers(self.bootstrap):
            address = Secured.of(server, self.security)
            try:
                raw_client.metadata(address, [], ASK_LIMIT_S)
                return address
            except raw_client.WireError as error:
                problem = problem or error
        hint = "" if self.security is not None else "; if it requires TLS or SASL, set --client-config"
        raise ClusterError(f"--bootstrap {self.bootstrap}: no broker answers: {problem}{hint}")

    def nodes(self, admin: AdminClient, reached: raw_client.Address) -> list[CommandedNode]:
        """Return the nodes, brokers first; each broker must be reachable by itself."""
        try:
            brokers = admin.list_topics(timeout=ASK_LIMIT_S * 2).brokers
        except KafkaException as problem:
            raise ClusterError(
                f"{self.bootstrap}: the brokers cannot be listed: {problem.args[0].str()}"
            ) from problem
        voters = _voters(reached)
        found = [
            self._node(
                Member(f"broker-{number}", number, True, number in voters), (str(broker.host), broker.port)
            )
            for number, broker in sorted(brokers.items())
        ]
        for broker in found:
            broker.metadata()
        if not found:
            raise ClusterError(f"{self.bootstrap} names no brokers in its metadata")
        found += [
            self._node(Member(f"controller-{number}", number, False, True), None)
            for number in sorted(set(voters) - set(brokers))
        ]
        if self.powers is not None:
            self.powers.must_be_nodes([node.name for node in found])
        return found

    def _node(self, member: Member, place: tuple[str, int] | None) -> CommandedNode:
        control = Secured.of(place, self.security) if place is not None else None
        given: dict[str, object] = {"node": member.name, "id": member.id}
        if place is not None:
            given |= {"host": place[0], "port": place[1]}
        # Commands for all nodes are for brokers: a separate controller has powers only if it has its own table.
        if self.powers is None or (place is None and member.name not in self.powers.nodes):
            return commanded(member, control, Commands({}), self.report)
        return commanded(member, control, self.powers.of(member.name, given), self.report)


def servers(bootstrap: str) -> list[raw_client.Address]:
    """Return the hosts and ports of HOST:PORT,…, also of [IPV6]:PORT."""
    return parse_list(bootstrap, "--bootstrap")


def _voters(broker: raw_client.Address) -> tuple[int, ...]:
    try:
        return raw_client.quorum_voters(broker, ASK_LIMIT_S)
    except raw_client.WireError:  # no quorum: the cluster uses ZooKeeper, or another way to agree
        return ()
