"""Send one request to one chosen server, on a connection that negotiates the version first."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from harness.kafka.protocol import messages
from harness.kafka.protocol.addresses import Address, shown
from harness.kafka.protocol.messages import WireError
from harness.kafka.protocol.security import CertificateError, security_of

_UNSUPPORTED_VERSION = 35
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
T = TypeVar("T")
Exchange = Callable[[bytes], bytes]  # sends a request; returns the answer, both with their headers


class UnansweredError(WireError):
    """The request was sent, but no answer came within the limit."""


class ClosedError(WireError):
    """The connection was refused, or closed before the answer was complete: no server is there."""


class UnsupportedError(WireError):
    """The server does not offer the request in a version known here. Retrying does not help."""

    def __init__(self, text: str, api: str) -> None:
        super().__init__(text)
        self.api = api


@dataclass(frozen=True)
class Api:
    """A request, with the versions `first` to `last` that are known here."""

    name: str
    key: int
    first: int
    last: int

    def best(self, offered: Mapping[int, tuple[int, int]], place: str) -> int:
        """Return the highest version that both sides know."""
        lowest, highest = offered.get(self.key, (0, -1))
        version = min(self.last, highest)
        if version < max(self.first, lowest):
            theirs = f"offers versions {lowest} to {highest}" if highest >= lowest else "does not offer it"
            raise UnsupportedError(
                f"{self.name}: {place} {theirs}, onceproof knows versions {self.first} to {self.last}",
                self.name,
            )
        return version


API_VERSIONS = Api("ApiVersions", 18, 0, 4)
CLIENT_SOFTWARE = {"client_software_name": "onceproof", "client_software_version": "1"}


def ask(address: Address, message: bytes, timeout_s: float) -> bytes:
    """Send one request on a new connection; return the answer without its size and correlation id."""
    return _connected(address, timeout_s, lambda exchange: exchange(message))[4:]


def call(address: Address, api: Api, values: Mapping[str, Any], timeout_s: float) -> Any:
    """Send a request in the highest version that both sides know; return the answer with the fields of this version.

    `values` has the fields of all versions; those that the version does not have are left out. The server reports its versions
    on the same connection, so an upgraded server gets a version that it knows. Raises UnsupportedError if there is no common
    version.
    """

    def talk(exchange: Exchange) -> Any:
        version = api.best(_offered(exchange), shown(address))
        return _converse(exchange, api.key, version, values)

    return _connected(address, timeout_s, talk)


def offered(address: Address, timeout_s: float) -> dict[int, tuple[int, int]]:
    """Return the requests that this server offers: lowest and highest version by API key."""
    return _connected(address, timeout_s, _offered)


def _offered(exchange: Exchange) -> dict[int, tuple[int, int]]:
    """Ask by version 0, which every server since Kafka 0.10 knows; a server without it answers with its own versions."""
    answer = _converse(exchange, API_VERSIONS.key, 0, {})
    lowest = {one.api_key: one.min_version for one in answer.api_keys}.get(API_VERSIONS.key, 0)
    if answer.error_code == _UNSUPPORTED_VERSION and 0 < lowest <= API_VERSIONS.last:
        answer = _converse(exchange, API_VERSIONS.key, lowest, CLIENT_SOFTWARE)
    if answer.error_code:
        raise WireError(f"the server does not report which requests it offers: error {answer.error_code}")
    return {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


def _converse(exchange: Exchange, key: int, version: int, values: Mapping[str, Any]) -> Any:
    return messages.decode(key, version, exchange(messages.encode(key, version, values)))


def connect(address: Address, timeout_s: float) -> socket.socket:
    """Return a connection that is ready for requests: encrypted and authenticated if the address has security settings.

    Raises OSError like a plain connect, and RefusedError if one side does not accept the other.
    """
    deadline = time.monotonic() + timeout_s
    place, security = shown(address), security_of(address)
    connection = socket.create_connection((address[0], int(address[1])), timeout=timeout_s)
    if security is None:
        return connection
    try:
        if security.encrypted:
            # A certificate names an IPv6 address without its zone.
            name = address[0].partition("%")[0]
            connection = security.context.wrap_socket(connection, server_hostname=name)
        if security.sasl:
            exchange = partial(_exchange, connection, deadline, place)
            security.authenticate(place, partial(_converse, exchange))
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise CertificateError(f"{place}: its certificate is refused: {error.verify_message}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(address: Address, timeout_s: float, talk: Callable[[Exchange], T]) -> T:
    deadline = time.monotonic() + timeout_s
    place = shown(address)
    try:
        with connect(address, timeout_s) as connection:
            return talk(partial(_exchange, connection, deadline, place))
    except TimeoutError:
        raise UnansweredError(f"{place} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise ClosedError(f"{place} cannot be reached: {error}") from error


def _exchange(connection: socket.socket, deadline: float, place: str, message: bytes) -> bytes:
    """Send a message; return the answer without its size."""
    connection.sendall(message)
    (size,) = struct.unpack(">i", receive(connection, 4, deadline))
    if not 4 <= size <= _MAX_ANSWER_BYTES:
        raise WireError(
            f"{place} answered with a size of {size} bytes: it does not speak Kafka, or only through TLS"
        )
    return receive(connection, size, deadline)


def receive(connection: socket.socket, size: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(size)
        if not part:
            raise ConnectionResetError("closed before the answer was complete")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
