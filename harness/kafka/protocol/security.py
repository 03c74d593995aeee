"""TLS and SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512) of the raw client.

All values come from the settings that the client library gets too, so that a secret is in one place only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.errors import ClusterError, UsageError

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_SCRAM)

# Sends a request on the connection that is being authenticated: API key, version, fields; returns the answer.
Converse = Callable[[int, int, Mapping[str, Any]], Any]


def encrypts(protocol: str) -> bool:
    """Return True if a client of this security protocol encrypts what it sends."""
    return protocol.endswith("ssl")


class RefusedError(ClusterError):
    """The server or this client refused the other one. Retrying does not help."""


class CertificateError(RefusedError):
    """The server's certificate is not trusted, not for this address, or out of date."""


class AuthenticationError(RefusedError):
    """The server does not know the user or the password, or does not offer the mechanism."""


@dataclass(frozen=True)
class Security:
    """The security settings of a client, by librdkafka's names. Never shown: they contain secrets."""

    settings: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Security | None:
        """Return the security of these settings; None for plaintext."""
        protocol = str(settings.get("security.protocol", "plaintext")).lower()
        if protocol not in PROTOCOLS:
            raise UsageError(f"security.protocol={protocol}: unknown; choose one of {', '.join(PROTOCOLS)}")
        found = cls(dict(settings))
        if found.sasl and found.mechanism not in MECHANISMS:
            raise UsageError(
                f"sasl.mechanism={found.mechanism}: not supported; choose one of {', '.join(MECHANISMS)}"
            )
        return None if protocol == "plaintext" else found

    @property
    def protocol(self) -> str:
        return str(self.settings.get("security.protocol", "plaintext")).lower()

    @property
    def encrypted(self) -> bool:
        return encrypts(self.protocol)

    @property
    def sasl(self) -> bool:
        return self.protocol.startswith("sasl")

    @property
    def mechanism(self) -> str:
        return str(self.settings.get("sasl.mechanism", self.settings.get("sasl.mechanisms", "GSSAPI")))

    @cached_property
    def context(self) -> ssl.SSLContext:
        """The TLS context, made once: reading the CA certificates for each request would be slow."""
        given = self.settings
        try:
            made = ssl.create_default_context(
                cafile=given.get("ssl.ca.location"), cadata=given.get("ssl.ca.pem")
            )
            if certificate := given.get("ssl.certificate.location"):
                made.load_cert_chain(
                    certificate, given.get("ssl.key.location"), given.get("ssl.key.password")
                )
        except OSError as error:
            raise UsageError(f"the files of ssl.* cannot be read: {error}") from error
        if given.get("ssl.endpoint.identification.algorithm", "https") == "none":
            made.check_hostname = False
        if str(given.get("enable.ssl.certificate.verification", "true")).lower() == "false":
            made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        return made

    def authenticate(self, place: str, converse: Converse) -> None:
        """Authenticate on a new connection, before the first request."""
        user, password = (
            str(self.settings.get("sasl.username", "")),
            str(self.settings.get("sasl.password", "")),
        )
        if converse(_SASL_HANDSHAKE, 1, {"mechanism": self.mechanism}).error_code:
            raise AuthenticationError(f"{place} does not offer sasl.mechanism={self.mechanism}")

        def say(words: bytes) -> bytes:
            answer = converse(_SASL_AUTHENTICATE, 0, {"auth_bytes": words})
            if answer.error_code:
                why = answer.error_message or f"error {answer.error_code}"
                raise AuthenticationError(f"{place} refused sasl.username={user}: {why}")
            return bytes(answer.auth_bytes)

        if self.mechanism == "PLAIN":
            say(f"\0{user}\0{password}".encode())
        else:
            _scram(_SCRAM[self.mechanism], user, password, say, place)


class Secured(tuple[str, int]):
    """An address, host and port as everywhere, that also has the security settings of its server."""

    security: Security

    @classmethod
    def of(cls, address: tuple[str, int], security: Security | None) -> tuple[str, int]:
        if security is None:
            return address
        made = cls(address)
        made.security = security
        return made


def security_of(address: tuple[str, int]) -> Security | None:
    return address.security if isinstance(address, Secured) else None


def salted(kind: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the hash that a server keeps in place of a password (RFC 5802)."""
    return hashlib.pbkdf2_hmac(kind, password.encode(), salt, iterations)


def digest(mechanism: str) -> str:
    """Return the hash of a SCRAM mechanism, by its name in hashlib."""
    return _SCRAM[mechanism]


def _scram(kind: str, user: str, password: str, say: Callable[[bytes], bytes], place: str) -> None:
    """Authenticate as a client of RFC 5802; the server has to prove that it knows the password, too."""
    nonce = secrets.token_hex(16)
    first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    answer = say(f"n,,{first}".encode()).decode()
    parts = dict(part.split("=", 1) for part in answer.split(","))
    if not parts["r"].startswith(nonce):
        raise AuthenticationError(f"{place} answers SCRAM with the nonce of another client")
    key = salted(kind, password, base64.b64decode(parts["s"]), int(parts["i"]))
    without_proof = f"c=biws,r={parts['r']}"
    signed = f"{first},{answer},{without_proof}".encode()
    client_key = hmac.digest(key, b"Client Key", kind)
    signature = hmac.digest(hashlib.new(kind, client_key).digest(), signed, kind)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    last = say(f"{without_proof},p={base64.b64encode(proof).decode()}".encode()).decode()
    expected = hmac.digest(hmac.digest(key, b"Server Key", kind), signed, kind)
    if last != f"v={base64.b64encode(expected).decode()}":
        raise AuthenticationError(f"{place} did not prove that it knows the password of {user}")
