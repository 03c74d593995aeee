"""Hosts and ports, with IPv6, in one form everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.existing import ExistingCluster
from harness.errors import UsageError
from harness.kafka.protocol.addresses import parse, parse_list, shown


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka-1:9092", ("kafka-1", 9092)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:9092", ("::1", 9092)),
        ("[2001:db8::7]:65535", ("2001:db8::7", 65535)),
        ("[fe80::1%eth0]:9092", ("fe80::1%eth0", 9092)),
    ],
)
def test_an_address_is_read_and_shown_alike(text: str, address: tuple[str, int]) -> None:
    assert parse(text, "--bootstrap") == address
    assert shown(address) == text


def test_a_list_may_mix_both_kinds() -> None:
    assert parse_list("a:1, [::1]:2,10.0.0.1:3", "--bootstrap") == [("a", 1), ("::1", 2), ("10.0.0.1", 3)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("::1:9092", r"put an IPv6 address into brackets, such as \[::1\]:9092"),
        ("[::1]", r"after the brackets comes a port"),
        ("[::1]9092", r"after the brackets comes a port"),
        ("[::1:9092", r"after the brackets comes a port"),
        ("[not-ipv6]:9092", r"not-ipv6 is not an IPv6 address"),
        ("[127.0.0.1]:9092", r"127\.0\.0\.1 is not an IPv6 address"),
        ("kafka", r"HOST:PORT or \[IPV6\]:PORT"),
        (":9092", r"HOST:PORT"),
        ("", r"HOST:PORT"),
        ("a:1,,b:2", r"HOST:PORT"),
        ("a:port", r"the port is a number from 1 to 65535"),
        ("a:0", r"from 1 to 65535"),
        ("a:65536", r"from 1 to 65535"),
        ("a:٣", r"from 1 to 65535"),
        ("http://a:1", r"brackets|HOST:PORT"),
    ],
)
def test_a_bad_address_is_a_one_line_error(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=f"^--bootstrap .*{complaint}") as raised:
        ExistingCluster(tmp_path, bootstrap=text)
    assert "\n" not in str(raised.value)
