"""Client security of a cluster that onceproof starts: TLS and SASL/SCRAM on the client lanes, control included.

Brokers and controllers use plain text between each other. The user is created through the brokers' own listener,
so that no password is ever in a file or in the arguments of a process.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.clusters.base.certificates import Certificates, make
from harness.clusters.base.server import Server
from harness.clusters.links.mesh import LANE_PORTS, Mesh, Port
from harness.contracts import Lane
from harness.errors import UsageError
from harness.kafka.protocol import admin_requests, raw_client
from harness.kafka.protocol.security import PROTOCOLS, AuthenticationError, Security

MECHANISM = "SCRAM-SHA-512"
USER = "onceproof"
_FIRST_LIMIT_S = 10.0  # a JVM loads its classes for TLS and SCRAM at the first connection
_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass
class Access:
    """The credentials of one cluster, for its brokers and its clients; made for each cluster."""

    protocol: str
    certificates: Certificates | None
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _made: bool = False

    @property
    def security(self) -> Security:
        """Return the security settings of a client."""
        settings: dict[str, Any] = {"security.protocol": self.protocol}
        if self.certificates is not None:
            settings["ssl.ca.location"] = str(self.certificates.authority)
        if self._sasl:
            user = {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": self.password}
            settings |= user
        return Security(settings)

    def broker_settings(self) -> dict[str, str]:
        lanes = {port.name: self.protocol.upper() for port in LANE_PORTS.values()}
        by_name = {"INTERNAL": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **lanes}
        settings = {
            "listener.security.protocol.map": ",".join(f"{name}:{how}" for name, how in by_name.items())
        }
        if self.certificates is not None:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.certificates.server),
            }
        if self._sasl:
            settings["sasl.enabled.mechanisms"] = MECHANISM
            for name in lanes:
                key = f"listener.name.{name.lower()}.{MECHANISM.lower()}.sasl.jaas.config"
                settings[key] = _JAAS
        return settings

    def admit(self, brokers: Sequence[Server]) -> bool:
        """Create the user, once; return whether every broker accepts it by now."""
        if not self._sasl:
            return True
        if not self._made:
            internal = (brokers[0].address, int(Port.INTERNAL))
            admin_requests.make_user(internal, USER, self.password, MECHANISM, _FIRST_LIMIT_S)
            self._made = True
        try:
            for broker in brokers:
                raw_client.metadata(broker.control, [], _FIRST_LIMIT_S)
        except AuthenticationError:  # the broker does not know the user yet
            return False
        return True

    @property
    def _sasl(self) -> bool:
        return self.protocol.startswith("sasl")


def access(protocol: str, mesh: Mesh, folder: Path, certificate_days: int) -> Access | None:
    """Return the credentials for the protocol; None for plain text, which needs none."""
    if protocol == "plaintext":
        return None
    if protocol not in PROTOCOLS:
        raise UsageError(f"--security {protocol}: unknown protocol; choose one of {', '.join(PROTOCOLS)}")
    brokers = [member for member in mesh.members if member.broker]
    addresses = [mesh.lane_address(lane, member) for lane in Lane for member in brokers]
    encrypted = protocol.endswith("ssl")
    return Access(protocol, make(folder, addresses, certificate_days) if encrypted else None)
