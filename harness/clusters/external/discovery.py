"""Who belongs to a cluster that is not ours: its brokers and controllers, as it tells itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.clusters.external.node import ASK_LIMIT_S, CommandedNode, commanded
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
    tell: Callable[[str], None]

    def reach(self) -> raw_client.Address:
        """The first server that answers; if there is none, what the first one said is told."""
        problem: ClusterError | None = None
        for server in servers(self.bootstrap):
            address = Secured.of(server, self.security)
            try:
                raw_client.metadata(address, [], ASK_LIMIT_S)
                return address
            except raw_client.WireError as error:
                problem = problem or error
        hint = "" if self.security is not None else "; if it wants TLS or SASL, give --client-config"
        raise ClusterError(f"--bootstrap {self.bootstrap}: no broker answers: {problem}{hint}")

    def nodes(self, admin: AdminClient, reached: raw_client.Address) -> list[CommandedNode]:
        """Brokers first; each of them has to be reached by itself."""
        try:
            brokers = admin.list_topics(timeout=ASK_LIMIT_S * 2).brokers
        except KafkaException as problem:
            raise ClusterError(f"{self.bootstrap} tells of no brokers: {problem.args[0].str()}") from problem
        voters = _voters(reached)
        found = [
            self._node(
                Member(f"broker-{number}", number, True, number in voters), (str(told.host), told.port)
            )
            for number, told in sorted(brokers.items())
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
        # Commands for all nodes are meant for brokers: a controller apart has powers when it has a table of its own.
        if self.powers is None or (place is None and member.name not in self.powers.nodes):
            return commanded(member, control, Commands({}), self.tell)
        return commanded(member, control, self.powers.of(member.name, given), self.tell)


def servers(bootstrap: str) -> list[raw_client.Address]:
    """The hosts and ports of HOST:PORT,…, also of [IPV6]:PORT."""
    return parse_list(bootstrap, "--bootstrap")


def _voters(broker: raw_client.Address) -> tuple[int, ...]:
    try:
        return raw_client.quorum_voters(broker, ASK_LIMIT_S)
    except raw_client.WireError:  # no quorum: it has ZooKeeper, or another way to agree
        return ()
