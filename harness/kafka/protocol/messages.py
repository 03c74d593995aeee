"""Kafka's messages by the names of their fields. kio knows the fields of every version, and how each is encoded.

kio loads the module of a message when it is first used, so only requests that are really sent cost time. Its readers of whole
answers are not used: they refuse tags and error codes that they do not know, which servers of later versions may send.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from functools import partial
from typing import Any, TypeVar, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.request_header import v1, v2
from kio.serial import entity_writer, readers
from kio.serial.errors import BufferUnderflow, SerialError
from kio.static.primitive import i16, i32

from harness.errors import ClusterError

_CLIENT_ID = "onceproof-wire"
T = TypeVar("T")
_Reader = Callable[
    [Any, int], tuple[Any, int]
]  # from bytes and a position: the value, and how many bytes it has
_NUMBERS: Mapping[str, _Reader] = {
    "bool": readers.read_boolean, "int8": readers.read_int8, "int16": readers.read_int16, "int32": readers.read_int32,
    "int64": readers.read_int64, "uuid": readers.read_uuid, "error_code": readers.read_int16,
    "timedelta_i32": readers.read_int32, "datetime_i64": readers.read_int64,
}  # fmt: skip
_TEXTS: Mapping[bool, _Reader] = {
    True: readers.read_compact_string_nullable,
    False: readers.read_nullable_legacy_string,
}
_BYTES: Mapping[bool, _Reader] = {
    True: readers.read_compact_string_as_bytes_nullable,
    False: readers.read_nullable_legacy_bytes,
}


class WireError(ClusterError):
    """The server did not answer within the limit, closed the connection, or answered with an error."""


def request(key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    """Return a complete request with any bytes as its body, and with its size in front."""
    header = (v2 if flexible else v1).RequestHeader(
        request_api_key=i16(key),
        request_api_version=i16(version),
        correlation_id=i32(1),
        client_id=_CLIENT_ID,
    )
    message = _encoded(header) + body
    return struct.pack(">i", len(message)) + message


def encode(key: int, version: int, values: Mapping[str, Any]) -> bytes:
    """Return a complete request. Values for fields that this version does not have are left out."""
    kind = load_request_schema(key, version)
    return request(key, version, _encoded(_entity(kind, values)), flexible=kind.__flexible__)


def decode(key: int, version: int, answer: bytes) -> Any:
    """Return an answer, header included, as an object with the fields of its version.

    Errors and times (in ms) are plain numbers.
    """
    kind = load_response_schema(key, version)
    try:
        _header, size = _read(kind.__header_schema__, answer, 0)
        return _read(kind, answer, size)[0]
    except BufferUnderflow:
        raise WireError(
            "the answer ends too early: it does not have the version that was requested"
        ) from None
    except (SerialError, ValueError) as error:  # ValueError: a number of more bytes than its type has
        raise WireError(f"the answer cannot be read: {error}") from error


def reason(refused: Any) -> str:
    """Return the server's text about an error, or the number of the error if there is no text."""
    return getattr(refused, "error_message", None) or f"error {refused.error_code}"


def first(found: Sequence[T], complaint: str) -> T:
    """Return the part of an answer about the one thing that was asked for; raise the complaint if there is none."""
    if not found:
        raise WireError(complaint)
    return found[0]


def partitions(topics: Iterable[Any]) -> list[Any]:
    """Return the partitions of all topics of an answer."""
    return [one for topic in topics for one in topic.partitions]


def _encoded(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _entity(kind: Any, values: Mapping[str, Any]) -> Any:
    """Return an object of `kind`. Inner structures are given as lists of mappings."""
    known = {}
    for field in fields(kind):
        if field.name in values:
            value, inner = values[field.name], _structure(field.type)
            known[field.name] = value if inner is None else [_entity(inner, one) for one in value]
    return kind(**known)


def _structure(hint: Any) -> Any:
    """Return the class of the structures in an array such as `tuple[Topic, ...] | None`; None for plain values."""
    if is_dataclass(hint):
        return hint
    return next(filter(None, map(_structure, get_args(hint))), None)


def _read(kind: Any, data: bytes, start: int) -> tuple[Any, int]:
    """Return the structure that begins at `start`, and how many bytes it has. Unknown tags are skipped."""
    values: dict[str, Any] = {}
    at = start

    def take(reader: _Reader) -> Any:
        nonlocal at
        value, size = reader(data, at)
        at += size
        return value

    tagged = {field.metadata["tag"]: field for field in fields(kind) if "tag" in field.metadata}
    for field in fields(kind):
        if "tag" not in field.metadata:
            values[field.name] = take(_reader(field, kind.__flexible__))
    for _ in range(take(readers.read_unsigned_varint) if kind.__flexible__ else 0):
        tag, size = take(readers.read_unsigned_varint), take(readers.read_unsigned_varint)
        if tag in tagged:
            values[tagged[tag].name] = _reader(tagged[tag], True)(data, at)[0]
        at += size
    return kind(**values), at - start


def _reader(field: Field[Any], flexible: bool) -> _Reader:
    inner, name = _structure(field.type), field.metadata.get("kafka_type", "")
    reader: _Reader
    if inner:
        reader = partial(_read, inner)
    elif name in _NUMBERS:
        reader = _NUMBERS[name]
    else:
        reader = (_TEXTS if name == "string" else _BYTES)[flexible]
    if any(get_origin(hint) is tuple for hint in (field.type, *get_args(field.type))):
        return (readers.compact_array_reader if flexible else readers.legacy_array_reader)(reader)
    return reader
