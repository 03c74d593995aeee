"""Fields of Kafka's requests and answers. `flexible` versions have compact lengths and tags."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from harness.errors import ClusterError

T = TypeVar("T")


class WireError(ClusterError):
    """The server did not answer within the limit, closed the connection, or answered with an error."""


class Reader:
    """Reads an answer field by field.

    `text`, `items` and `end` read the encoding of the version; the other methods read one encoding, whatever the version.
    """

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._at = 0
        self._flexible = flexible

    def take(self, form: str) -> Any:
        try:
            (value,) = struct.unpack_from(">" + form, self._data, self._at)
        except struct.error:
            raise WireError(
                "the answer ends too early: it does not have the version that was requested"
            ) from None
        self._at += struct.calcsize(">" + form)
        return value

    def text(self) -> str | None:
        return self.compact_string() if self._flexible else self.string()

    def items(self, item: Callable[[], T]) -> tuple[T, ...]:
        return self.compact_array(item) if self._flexible else self.array(item)

    def count(self) -> int:
        """Read the number of items of an array, which follow."""
        return self.varint() - 1 if self._flexible else int(self.take("i"))

    def end(self) -> None:
        """Read the end of a structure."""
        if self._flexible:
            self.tags()

    def string(self) -> str | None:
        return self._text(self.take("h"))

    def compact_string(self) -> str | None:
        return self._text(self.varint() - 1)

    def array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return tuple(item() for _ in range(self.take("i")))

    def compact_array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return tuple(item() for _ in range(self.varint() - 1))

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte: int = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            size = self.varint()
            self._at += size

    def _text(self, size: int) -> str | None:
        if size < 0:
            return None
        raw = self._data[self._at : self._at + size]
        self._at += size
        return raw.decode(errors="replace")


class Writer:
    """Builds the body of a request."""

    def __init__(self, *, flexible: bool = False) -> None:
        self._flexible = flexible
        self._parts: list[bytes] = []

    def put(self, form: str, *values: Any) -> Writer:
        self._parts.append(struct.pack(">" + form, *values))
        return self

    def text(self, text: str | None) -> Writer:
        raw = text.encode() if text is not None else None
        if self._flexible:
            self._parts.append(_varint(0) if raw is None else _varint(len(raw) + 1) + raw)
        else:
            self._parts.append(struct.pack(">h", -1) if raw is None else struct.pack(">h", len(raw)) + raw)
        return self

    def data(self, raw: bytes) -> Writer:
        """Append bytes with their length."""
        size = _varint(len(raw) + 1) if self._flexible else struct.pack(">i", len(raw))
        self._parts.append(size + raw)
        return self

    def items(self, things: Iterable[T], put: Callable[[T], object]) -> Writer:
        there = list(things)
        self._parts.append(_varint(len(there) + 1) if self._flexible else struct.pack(">i", len(there)))
        for thing in there:
            put(thing)
        return self

    def end(self) -> Writer:
        """Append the end of a structure."""
        if self._flexible:
            self._parts.append(b"\0")
        return self

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)


def string(text: str | bytes) -> bytes:
    """Encode a string for versions that are not flexible."""
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">h", len(raw)) + raw


def compact_text(text: str) -> bytes:
    """Encode a string for flexible versions."""
    return _varint(len(text.encode()) + 1) + text.encode()


def compact_bytes(raw: bytes) -> bytes:
    return _varint(len(raw) + 1) + raw


def compact_array(items: Iterable[bytes]) -> bytes:
    """Encode an array for flexible versions."""
    made = list(items)
    return _varint(len(made) + 1) + b"".join(made)


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])
