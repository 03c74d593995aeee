"""Every request of the harness, in every version that it may be sent in."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema

from harness.kafka.protocol import admin_requests, features, fetch, messages, produce, quorum, raw_client
from harness.kafka.protocol.call import Api
from harness.kafka.protocol.producers import DESCRIBE_PRODUCERS, open_transactions
from harness.kafka.protocol.transactions import INIT_PRODUCER_ID, init_producer_id
from tests.fake_server import serve

SERVER: raw_client.Address = ("host", 1)
REQUESTS: list[tuple[Api, Callable[[], object]]] = [
    (raw_client.METADATA, lambda: raw_client.metadata(SERVER, ["a"], 1.0)),
    (
        raw_client.FIND_COORDINATOR,
        lambda: raw_client.coordinator(SERVER, "g", transaction=True, timeout_s=1.0),
    ),
    (produce.PRODUCE, lambda: produce.append(SERVER, "a", 0, b"value", 1.0)),
    (fetch.FETCH, lambda: fetch.fetch(SERVER, "a", 0, 7, 1.0)),
    (quorum.DESCRIBE_QUORUM, lambda: quorum.describe_quorum(SERVER, 1.0)),
    (INIT_PRODUCER_ID, lambda: init_producer_id(SERVER, "id", 7, 1.0)),
    (DESCRIBE_PRODUCERS, lambda: open_transactions(SERVER, "a", [0], 1.0)),
    (features.FEATURES, lambda: features.features(SERVER, 1.0)),
    (features.UPDATE_FEATURES, lambda: features.raise_features(SERVER, {"f": 2}, 1.0)),
    (
        admin_requests.LIST_OFFSETS,
        lambda: admin_requests.offsets(SERVER, "a", [0], admin_requests.LATEST, 1.0),
    ),
    (
        admin_requests.OFFSET_FOR_LEADER_EPOCH,
        lambda: admin_requests.end_of_epoch(SERVER, "a", 0, 3, 1.0),
    ),
    (admin_requests.ELECT_LEADERS, lambda: admin_requests.elect(SERVER, "a", [0], True, 1.0)),
    (
        admin_requests.ALTER_PARTITION_REASSIGNMENTS,
        lambda: admin_requests.reassign(SERVER, "a", {0: [1, 2]}, 1.0),
    ),
    (
        admin_requests.ALTER_USER_SCRAM_CREDENTIALS,
        lambda: admin_requests.make_user(SERVER, "user", "password", "SCRAM-SHA-256", 1.0),
    ),
]


def names(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all fields, also of inner structures."""
    for name, value in values.items():
        yield name
        for one in value if isinstance(value, list) else []:
            if isinstance(one, Mapping):
                yield from names(one)


@pytest.mark.parametrize(("api", "send"), REQUESTS, ids=[api.name for api, _ in REQUESTS])
def test_every_version_is_sent_and_every_value_belongs_to_one(
    monkeypatch: pytest.MonkeyPatch, api: Api, send: Callable[[], object]
) -> None:
    given: list[Mapping[str, Any]] = []
    encode = messages.encode

    def listen(key: int, version: int, values: Mapping[str, Any]) -> bytes:
        if (key, version) != (18, 0):
            given.append(values)
        return encode(key, version, values)

    monkeypatch.setattr(messages, "encode", listen)
    known: set[str] = set()
    for version in range(api.first, api.last + 1):
        sent = serve(monkeypatch, {api.key: (0, version)}, [b""])
        with pytest.raises(raw_client.WireError, match="ends too early"):
            send()
        assert struct.unpack_from(">hh", sent[0], 4) == (api.key, version)
        schema = load_request_schema(api.key, version)
        known |= set(fields_of(schema))
        assert load_response_schema(api.key, version)
    assert set(names(given[0])) <= known, "a misspelt name would be left out in every version"


def fields_of(schema: Any) -> Iterator[str]:
    for name, field in schema.__dataclass_fields__.items():
        yield name
        if (inner := messages._structure(field.type)) is not None:
            yield from fields_of(inner)
