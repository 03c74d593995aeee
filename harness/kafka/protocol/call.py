"""Send one request to one chosen server, on a connection that negotiates the version first."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from harness.kafka.protocol.addresses import Address, shown
from harness.kafka.protocol.codec import Reader, WireError, Writer, string
from harness.kafka.protocol.security import CertificateError, security_of

__all__ = [
    "API_VERSIONS", "Address", "Api", "ClosedError", "Reader", "UnansweredError", "UnsupportedError", "WireError",
    "Writer", "ask", "call", "connect", "offered", "parse_offered", "receive", "request",
]  # fmt: skip
API_VERSIONS = 18
_UNSUPPORTED_VERSION = 35
_CLIENT_ID = b"onceproof-wire"
T = TypeVar("T")
_MAX_ANSWER_BYTES = 64 * 1024 * 1024


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
    """A request, with the versions `first` to `last` that are known here; versions from `flexible` on are flexible."""

    name: str
    key: int
    first: int
    last: int
    flexible: int

    def writer(self, version: int) -> Writer:
        return Writer(flexible=version >= self.flexible)

    def reader(self, version: int, answer: bytes) -> Reader:
        """Return a reader of an answer, positioned after its header."""
        reader = Reader(answer, flexible=version >= self.flexible)
        reader.end()
        return reader

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


def request(api: int, version: int, body: bytes, *, flexible: bool = False, correlation: int = 1) -> bytes:
    """Return a complete request, with its size in front."""
    header = (
        struct.pack(">hhi", api, version, correlation) + string(_CLIENT_ID) + (b"\0" if flexible else b"")
    )
    return struct.pack(">i", len(header) + len(body)) + header + body


def ask(address: Address, message: bytes, timeout_s: float) -> bytes:
    """Send one request on a new connection; return the answer without its size and correlation id."""
    return _connected(address, timeout_s, lambda exchange: exchange(message))


def call(
    address: Address,
    api: Api,
    body: Callable[[int], bytes | Writer],
    timeout_s: float,
    most: int | None = None,
) -> tuple[int, Reader]:
    """Send a request in the highest version that both sides know, `most` at most.

    Returns the version, and a reader of the answer after its header. The server reports its versions on the same connection,
    so an upgraded server gets a version that it knows. Raises UnsupportedError if there is no common version.
    """

    def talk(exchange: Callable[[bytes], bytes]) -> tuple[int, Reader]:
        offers = _offered(exchange)
        version = api.best(offers, shown(address))
        version = version if most is None else min(version, most)
        made = request(api.key, version, bytes(body(version)), flexible=version >= api.flexible)
        return version, api.reader(version, exchange(made))

    return _connected(address, timeout_s, talk)


def offered(address: Address, timeout_s: float) -> dict[int, tuple[int, int]]:
    """Return the requests that this server offers: lowest and highest version by API key."""
    return _connected(address, timeout_s, _offered)


def _offered(exchange: Callable[[bytes], bytes]) -> dict[int, tuple[int, int]]:
    """Ask by version 0, which every server since Kafka 0.10 knows; a server without it answers with its own versions."""
    error, ranges = parse_offered(exchange(request(API_VERSIONS, 0, b"")))
    if error == _UNSUPPORTED_VERSION and API_VERSIONS in ranges:
        version = ranges[API_VERSIONS][0]
        body = Writer(flexible=version >= 3)
        if version >= 3:
            body.text("onceproof").text("1").end()
        answer = exchange(request(API_VERSIONS, version, bytes(body), flexible=version >= 3))
        error, ranges = parse_offered(answer, flexible=version >= 3)
    if error:
        raise WireError(f"the server does not report which requests it offers: error {error}")
    return ranges


def parse_offered(answer: bytes, *, flexible: bool = False) -> tuple[int, dict[int, tuple[int, int]]]:
    """Return the error, and the lowest and highest version by API key. The header of this answer has no tags."""
    reader = Reader(answer, flexible=flexible)

    def one() -> tuple[int, tuple[int, int]]:
        key, versions = reader.take("h"), (reader.take("h"), reader.take("h"))
        reader.end()
        return key, versions

    error = int(reader.take("h"))
    return error, dict(reader.items(one))


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
            security.authenticate(
                place,
                lambda api, version, body: _exchange(
                    connection, request(api, version, body), deadline, place
                ),
            )
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise CertificateError(f"{place}: its certificate is refused: {error.verify_message}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(address: Address, timeout_s: float, talk: Callable[[Callable[[bytes], bytes]], T]) -> T:
    deadline = time.monotonic() + timeout_s
    place = shown(address)
    try:
        with connect(address, timeout_s) as connection:
            return talk(lambda message: _exchange(connection, message, deadline, place))
    except TimeoutError:
        raise UnansweredError(f"{place} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise ClosedError(f"{place} cannot be reached: {error}") from error


def _exchange(connection: socket.socket, message: bytes, deadline: float, place: str) -> bytes:
    connection.sendall(message)
    (size,) = struct.unpack(">i", receive(connection, 4, deadline))
    if not 4 <= size <= _MAX_ANSWER_BYTES:
        raise WireError(
            f"{place} answered with a size of {size} bytes: it does not speak Kafka, or only through TLS"
        )
    return receive(connection, size, deadline)[4:]


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
