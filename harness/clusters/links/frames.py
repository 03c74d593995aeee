"""The frames of the Kafka protocol in a stream of bytes: the position and kind of each."""

from __future__ import annotations

import struct
from dataclasses import dataclass

REQUEST_HEADER = struct.Struct(">ihhi")  # size, api key, api version, correlation id
ANSWER_HEADER = struct.Struct(">ii")  # size, correlation id
_SIZE = struct.Struct(">i")


@dataclass(frozen=True)
class Frame:
    """A frame that begins in the bytes that were just split. Answers do not contain their api key: it is -1 there."""

    at: int
    api_key: int
    correlation: int


class Frames:
    """Finds the frames of a stream that arrives in pieces of any size. Reads only headers, never bodies.

    From a size that is too small for a header on, the stream is not Kafka's and is passed on unparsed.
    """

    def __init__(self, header: struct.Struct = REQUEST_HEADER) -> None:
        self._header = header
        self._left = 0  # missing bytes of the last frame
        self._opaque = False

    def split(self, data: bytes) -> tuple[list[Frame], int]:
        """Return the frames that begin in `data`, and how many of its bytes were parsed.

        The rest is part of a header: pass it again, in front of the next bytes.
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
