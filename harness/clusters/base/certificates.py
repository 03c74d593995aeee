"""Certificates for one cluster: its own authority and one certificate for all its brokers.

Made by the program openssl, which has no Python package among our requirements. Brokers read PEM, so no Java tool is
needed. The authority's key is used once and then deleted.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ClusterError, SetupError

_LIMIT_S = 30.0
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Certificates:
    authority: Path  # the certificate that clients have to trust
    server: Path  # key and certificate in one file, for the brokers alone


def make(folder: Path, addresses: Sequence[str], days: int) -> Certificates:
    """Make certificates for these IP addresses. With `days` below 0 the certificate expired that many days ago."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ",".join(f"IP:{address}" for address in addresses)
    (folder / "names").write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n", encoding="ascii")
    _openssl(folder, "req", "-x509", *_NEW_KEY, "-subj", "/CN=onceproof authority", "-days", "365",
             "-keyout", "authority.key", "-out", "authority.pem")  # fmt: skip
    _openssl(folder, "req", *_NEW_KEY, "-subj", "/CN=onceproof broker",
             "-keyout", "server.key", "-out", "server.request")  # fmt: skip
    _openssl(folder, "x509", "-req", "-in", "server.request", "-CA", "authority.pem", "-CAkey", "authority.key",
             "-days", str(days), "-extfile", "names", "-out", "server.crt")  # fmt: skip
    server = folder / "server.pem"
    server.touch(mode=0o600)
    server.write_bytes((folder / "server.key").read_bytes() + (folder / "server.crt").read_bytes())
    for name in ("authority.key", "server.key", "server.request", "server.crt", "names"):
        (folder / name).unlink()
    return Certificates(folder / "authority.pem", server)


def _openssl(folder: Path, *words: str) -> None:
    try:
        done = subprocess.run(
            ["openssl", *words], cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except FileNotFoundError:
        raise SetupError(
            "openssl is not on the path; it is needed to make certificates: install it (Debian: openssl)"
        ) from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"openssl {words[0]} did not end within {_LIMIT_S:g} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ClusterError(f"openssl {words[0]} failed with code {done.returncode}: {last[:300]}")
