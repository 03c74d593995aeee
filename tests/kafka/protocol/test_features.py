"""Features on the wire: supported and finalized levels, byte by byte."""

from __future__ import annotations

import struct

import pytest

from harness.kafka.protocol.features import Features, features, lower_features, raise_features
from harness.kafka.protocol.raw_client import Address, WireError
from tests.fake_server import serve

SERVER: Address = ("host", 1)

# ApiVersions: no error, one api, no throttle, then four tagged fields.
ANSWER = b"".join(
    [
        b"\0\0",
        b"\x02\0\x12\0\0\0\x04\0",
        b"\0\0\0\0",
        b"\x04",
        b"\x00\x2a\x03\x11metadata.version\0\x01\0\x15\0\x0ekraft.version\0\0\0\x01\0",
        b"\x01\x08\0\0\0\0\0\0\0\x07",
        b"\x02\x17\x02\x11metadata.version\0\x15\0\x15\0",
        b"\x03\x01\x01",
    ]
)
FEATURES = Features({"metadata.version": (1, 21), "kraft.version": (0, 1)}, {"metadata.version": 21}, 7)
RAISED = b"\0" + b"\0\0\0\0" + b"\0\0" + b"\0" + b"\x02" + b"\x11metadata.version\0\0\0\0" + b"\0"


def test_features_are_read_from_the_tagged_fields_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {18: (0, 4)}, [ANSWER])
    assert features(SERVER, 1.0) == FEATURES
    assert [struct.unpack_from(">hh", message, 4) for message in sent] == [(18, 4)]


def test_a_server_without_features_reports_none(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {18: (0, 4)}, [b"\0\0" + b"\x01" + b"\0\0\0\0" + b"\0"])
    assert features(SERVER, 1.0) == Features({}, {}, -1)


def test_an_older_server_is_asked_in_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {18: (0, 3)}, [ANSWER])
    assert features(SERVER, 1.0) == FEATURES
    assert [struct.unpack_from(">hh", message, 4) for message in sent] == [(18, 3)]


def test_a_server_that_is_too_old_or_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {18: (0, 2)}, [])
    with pytest.raises(WireError, match="host:1 is too old to have features"):
        features(SERVER, 1.0)
    serve(monkeypatch, {18: (0, 4)}, [struct.pack(">h", 31) + b"\x01" + b"\0\0\0\0" + b"\0"])
    with pytest.raises(WireError, match="host:1 does not report its features: error 31"):
        features(SERVER, 1.0)


def test_levels_are_raised_by_these_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {57: (0, 1)}, [RAISED])
    raise_features(SERVER, {"metadata.version": 30}, 2.0)
    body = b"\0\0\x07\xd0" + b"\x02" + b"\x11metadata.version\0\x1e\x01\0" + b"\0" + b"\0"
    assert sent[0].endswith(body)
    assert struct.unpack_from(">hh", sent[0], 4) == (57, 1)


def test_levels_are_lowered_by_these_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = serve(monkeypatch, {57: (0, 1)}, [RAISED])
    lower_features(SERVER, {"metadata.version": 0}, 2.0)
    assert sent[0].endswith(b"\x11metadata.version\0\0\x02\0" + b"\0" + b"\0"), "a safe downgrade"


def test_a_refusal_names_the_feature_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    one = b"\x02" + b"\x11metadata.version\0\x5a\x04bad\0" + b"\0"
    refused = b"\0" + b"\0\0\0\0" + b"\0\0" + b"\0" + one
    overall = b"\0" + b"\0\0\0\0" + b"\0\x29" + b"\x05none" + b"\x01" + b"\0"
    serve(monkeypatch, {57: (0, 1)}, [refused, overall])
    with pytest.raises(WireError, match=r"the features were not raised: metadata\.version: bad$"):
        raise_features(SERVER, {"metadata.version": 99}, 1.0)
    with pytest.raises(WireError, match=r"the features were not raised: none$"):
        raise_features(SERVER, {"metadata.version": 99}, 1.0)
