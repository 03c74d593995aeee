"""Features on the wire: supported and finalized levels, byte by byte."""

from __future__ import annotations

import struct

import pytest

from harness.kafka.protocol import features as protocol_features
from harness.kafka.protocol.features import Features, features, parse_features, parse_refusal, raise_features
from harness.kafka.protocol.raw_client import Address, WireError
from tests.fake_server import serve

# ApiVersions: no error, one api, no throttle, then four tagged fields.
ANSWER = b"".join(
    [
        b"\0\0",
        b"\x02\0\x12\0\0\0\x04\0",
        b"\0\0\0\0",
        b"\x04",
        b"\x00\x2e\x03\x11metadata.version\0\x01\0\x15\0\x0ekraft.version\0\0\0\x01\0",
        b"\x01\x08\0\0\0\0\0\0\0\x07",
        b"\x02\x17\x02\x11metadata.version\0\x15\0\x15\0",
        b"\x03\x01\x01",
    ]
)
FEATURES = Features({"metadata.version": (1, 21), "kraft.version": (0, 1)}, {"metadata.version": 21}, 7)
TOO_NEW = struct.pack(">h", 35) + b"\0\0\0\0"
RAISED = b"\0" + b"\0\0\0\0" + b"\0\0" + b"\0" + b"\x02" + b"\x11metadata.version\0\0\0\0" + b"\0"


def asked(monkeypatch: pytest.MonkeyPatch, *answers: bytes) -> list[bytes]:
    """Give these answers in sequence; return the requests that were sent."""
    sent: list[bytes] = []
    left = list(answers)

    def ask(_address: Address, message: bytes, _timeout_s: float) -> bytes:
        sent.append(message)
        return left.pop(0)

    monkeypatch.setattr(protocol_features, "ask", ask)
    return sent


def test_features_are_read_from_the_tagged_fields_of_an_answer() -> None:
    assert parse_features(ANSWER) == FEATURES


def test_a_server_without_features_reports_none() -> None:
    assert parse_features(b"\0\0" + b"\x01" + b"\0\0\0\0" + b"\0") == Features({}, {}, -1)


def test_an_older_server_is_asked_again_in_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = asked(monkeypatch, TOO_NEW, ANSWER)
    assert features(("host", 1), 1.0) == FEATURES
    assert [struct.unpack_from(">hh", message, 4) for message in sent] == [(18, 4), (18, 3)]


def test_a_server_that_is_too_old_or_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked(monkeypatch, TOO_NEW, TOO_NEW)
    with pytest.raises(WireError, match="host:1 is too old to have features"):
        features(("host", 1), 1.0)
    asked(monkeypatch, struct.pack(">h", 31))
    with pytest.raises(WireError, match="host:1 does not report its features: error 31"):
        features(("host", 1), 1.0)


def test_levels_are_raised_by_these_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {57: (0, 1)}, [RAISED])
    raise_features(("host", 1), {"metadata.version": 30}, 2.0)
    body = b"\0\0\x07\xd0" + b"\x02" + b"\x11metadata.version\0\x1e\x01\0" + b"\0" + b"\0"
    assert sent[0].endswith(body)
    assert struct.unpack_from(">hh", sent[0], 4) == (57, 1)


def test_a_refusal_names_the_feature_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    one = b"\x02" + b"\x11metadata.version\0\x5a\x04bad\0" + b"\0"
    refused = b"\0" + b"\0\0\0\0" + b"\0\0" + b"\0" + one
    assert parse_refusal(refused) == "metadata.version: bad"
    overall = b"\0" + b"\0\0\0\0" + b"\0\x29" + b"\x05none" + b"\x01" + b"\0"
    assert parse_refusal(overall) == "none"
    assert parse_refusal(RAISED) == ""
    serve(monkeypatch, {57: (0, 1)}, [refused])
    with pytest.raises(WireError, match=r"the features were not raised: metadata\.version: bad"):
        raise_features(("host", 1), {"metadata.version": 99}, 1.0)
