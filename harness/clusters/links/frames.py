"""The frames of the Kafka protocol in a stream of bytes: where each begins and of what kind it is."""

from __future__ import annotations

import struct
from dataclasses import dataclass

REQUEST_HEADER = struct.Struct(">ihhi")  # size, api key, api version, correlation id
ANSWER_HEADER = struct.Struct(">ii")  # size, correlation id
_SIZE = struct.Struct(">i")


@dataclass(frozen=True)
class Frame:
    """A frame that begins in the bytes that were just split. Answers do not tell their api key: it is -1."""

    at: int
    api_key: int
    correlation: int


class Frames:
    """Finds the frames of a stream that comes in pieces of any size. Looks at headers only, never at bodies.

    A stream that does not speak Kafka (a size too small for a header) is taken as it comes from there on.
    """

    def __init__(self, header: struct.Struct = REQUEST_HEADER) -> None:
        self._header = header
        self._left = 0  # bytes of the last frame that are still to come
        self._opaque = False

    def split(self, data: bytes) -> tuple[list[Frame], int]:
        """The frames that begin in `data`, and how many bytes of it are understood.

        The rest is part of a header: hand it in again in front of what comes next.
        """
        found: list[Frame] = []
        at, end = 0, len(data)
        while at < end and not self._opaque:
            step = min(self._left, end - at)
            self._left -= step
            at += step
            there = end - at
            if there >= _SIZE.size and _SIZE.unpack_from(data, at)[0] < self._header.size - _SIZE.size:
                self._opaque = True
            elif there >= self._header.size:
                size, *kind, correlation = self._header.unpack_from(data, at)
                found.append(Frame(at, kind[0] if kind else -1, correlation))
                self._left = _SIZE.size + size
            else:
                return found, at
        return found, end
