"""TLS and SASL of the raw client: the examples of the RFCs, and a real TLS server with good and bad certificates."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.base import certificates
from harness.errors import UsageError
from harness.kafka.protocol import messages, raw_client
from harness.kafka.protocol.security import AuthenticationError, CertificateError, Secured, Security
from tests.fake_server import CORRELATION

SCRAM = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "user",
    "sasl.password": "pencil",
}
# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class FakeServer:
    """Answers the two requests of SASL with given words."""

    def __init__(self, *answers: str, error: str = "") -> None:
        self._answers, self._error = list(answers), error
        self.heard: list[str] = []

    def __call__(self, key: int, version: int, values: Mapping[str, Any]) -> Any:
        message = messages.encode(key, version, values)
        body = message[4 + 8 + 2 + len("onceproof-wire") :]
        return messages.decode(key, version, CORRELATION + self._answer(key, body))

    def _answer(self, key: int, body: bytes) -> bytes:
        if key == 17:
            return struct.pack(">hi", 0, 0)
        self.heard.append(body[4:].decode())
        if self._error:
            return struct.pack(">hh", 58, len(self._error)) + self._error.encode() + struct.pack(">i", 0)
        words = self._answers.pop(0).encode()
        return struct.pack(">hhi", 0, -1, len(words)) + words


def _security(**settings: Any) -> Security:
    found = Security.of({**SCRAM, **settings})
    assert found is not None
    return found


def test_scram_follows_the_example_of_the_rfc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.kafka.protocol.security.secrets.token_hex", lambda size: NONCE)
    server = FakeServer(SERVER_FIRST, SERVER_FINAL)
    _security().authenticate("here", server)
    assert server.heard == [f"n,,n=user,r={NONCE}", CLIENT_FINAL]


def test_a_server_that_does_not_know_the_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.kafka.protocol.security.secrets.token_hex", lambda size: NONCE)
    with pytest.raises(AuthenticationError, match="did not prove"):
        _security().authenticate("here", FakeServer(SERVER_FIRST, SERVER_FINAL.replace("v=6", "v=7")))
    with pytest.raises(AuthenticationError, match="nonce of another client"):
        _security().authenticate("here", FakeServer(SERVER_FIRST.replace(NONCE, "other")))


def test_a_refusal_names_place_and_user_and_never_the_password() -> None:
    with pytest.raises(AuthenticationError) as raised:
        _security().authenticate("here:1", FakeServer(error="invalid credentials"))
    assert str(raised.value) == "here:1 refused sasl.username=user: invalid credentials"
    assert "pencil" not in repr(_security())


def test_plain_sends_user_and_password() -> None:
    server = FakeServer("")
    _security(**{"sasl.mechanism": "PLAIN"}).authenticate("here", server)
    assert server.heard == ["\0user\0pencil"]


def test_unsupported_protocols_and_mechanisms_are_refused() -> None:
    with pytest.raises(UsageError, match=r"sasl\.mechanism=GSSAPI: .*PLAIN, SCRAM"):
        Security.of({"security.protocol": "sasl_ssl"})
    with pytest.raises(UsageError, match=r"security\.protocol=tls: unknown; choose one of plaintext"):
        Security.of({"security.protocol": "tls"})
    assert Security.of({}) is None


@pytest.mark.parametrize(
    ("address", "days", "complaint"),
    [
        ("127.0.0.1", 1, ""),
        ("127.0.0.1", -1, "certificate has expired"),
        ("127.0.0.9", 1, "IP address mismatch"),
    ],
    ids=["good", "expired", "of_another"],
)
def test_tls_accepts_only_valid_certificates(tmp_path: Path, address: str, days: int, complaint: str) -> None:
    made = certificates.make(tmp_path, [address], days)
    assert made.server.stat().st_mode & 0o077 == 0
    assert {file.name for file in tmp_path.iterdir()} == {"authority.pem", "server.pem"}
    security = Security.of({"security.protocol": "ssl", "ssl.ca.location": str(made.authority)})
    with _tls_server(made.server) as place:
        if complaint:
            with pytest.raises(
                CertificateError, match=f"{place[1]}: its certificate is refused: .*{complaint}"
            ):
                raw_client.api_versions(Secured.of(place, security), 5.0)
        else:
            raw_client.api_versions(Secured.of(place, security), 5.0)
    with pytest.raises(raw_client.ClosedError):  # no server is there: not a refusal
        raw_client.api_versions(Secured.of(place, security), 5.0)


@contextmanager
def _tls_server(keys: Path) -> Iterator[tuple[str, int]]:
    """Answer one request on one connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            plain, _peer = listening.accept()
            with suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
                connection.recv(1000)
                connection.sendall(b"\0\0\0\x06" + b"\0\0\0\x01" + b"ok")

        thread = threading.Thread(target=accept)
        thread.start()
        yield listening.getsockname()
        thread.join(10)
