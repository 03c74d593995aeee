"""Addresses as text, also with IPv6: `kafka-1:9092`, `[::1]:9092`, `[fe80::1%eth0]:9092`."""

from __future__ import annotations

import ipaddress

from harness.errors import UsageError

Address = tuple[str, int]
_FORM = "HOST:PORT or [IPV6]:PORT, several with a comma between them"


def shown(address: Address) -> str:
    """Return the text of an address; an IPv6 address is in brackets, to separate it from its port."""
    host, port = address[0], int(address[1])
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str, option: str) -> Address:
    """Return the host, without brackets, and the port. Raises UsageError, which names `option`."""
    text = text.strip()
    host, _, port = text.rpartition(":")
    if text.startswith("["):
        host = _ipv6(text, host, option)
    elif ":" in host:
        raise UsageError(
            f"{option} {text}: put an IPv6 address into brackets, such as [{host or '::1'}]:9092"
        )
    if not host or any(sign in host for sign in "[]/ "):
        raise UsageError(f"{option} {text}: {_FORM}")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise UsageError(f"{option} {text}: the port is a number from 1 to 65535; {_FORM}")
    return host, int(port)


def parse_list(texts: str, option: str) -> list[Address]:
    """Return all addresses of a comma-separated list."""
    return [parse(text, option) for text in texts.split(",")]


def _ipv6(text: str, bracketed: str, option: str) -> str:
    host = bracketed[1:-1]
    if not bracketed.endswith("]"):
        raise UsageError(f"{option} {text}: after the brackets comes a port, such as [::1]:9092")
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        raise UsageError(f"{option} {text}: {host} is not an IPv6 address") from None
    return host
