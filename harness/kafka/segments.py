"""Read the log of one replica from its disk: Kafka's segment files, without a JVM.

Kafka's own DumpLogSegments is in the jars of Kafka 3, but Kafka 4 has it in `kafka-tools`, which a broker does not need. It
prints payloads as text, which garbles binary ones. harness.kafka.batches has the format.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from kio.serial.errors import SerialError
from kio.serial.readers import read_signed_varlong, read_unsigned_varint

from harness.errors import ClusterError
from harness.kafka.batches import RECORDS_AT, LogBatch, batches
from harness.ledger import message

PIECE_BYTES = 8 * 1024 * 1024
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_XERIAL = b"\x82SNAPPY\x00"  # Java and librdkafka frame snappy with this
_XERIAL_AT = 16

Check = Callable[[], None]  # raises after the time limit


@dataclass(frozen=True)
class SoughtMessage:
    """The identity of a message, as in its payload."""

    run: int
    session: int
    txn: int
    seq: int

    @property
    def needle(self) -> bytes:
        """Bytes 8 to 32 of its payload (harness.ledger.message)."""
        return struct.pack("<QIIQ", self.run, self.session, self.txn, self.seq)


@dataclass
class ReplicaHolding:
    """The result of a search: the range of a replica's log, and the messages found in it."""

    start: int = -1  # the first offset; -1: there is no segment
    end: int = -1  # the offset after the last whole batch
    found: dict[SoughtMessage, list[int]] = field(default_factory=dict)  # offsets


def search(
    folder: Path,
    wanted: Sequence[SoughtMessage],
    check: Check = lambda: None,
    *,
    piece_bytes: int = PIECE_BYTES,
) -> ReplicaHolding:
    """Search for messages in all segments of a partition's folder, at any offset.

    Raises ClusterError if the log cannot be read or decompressed.
    """
    holding = ReplicaHolding()
    segments = sorted(folder.glob("*.log"), key=lambda path: int(path.stem))
    if not segments:
        raise ClusterError(f"{folder.name}: its folder contains no segment")
    holding.start = holding.end = int(segments[0].stem)
    for segment in segments:
        holding.end = max(holding.end, int(segment.stem))
        with segment.open("rb") as file:
            for piece, found in _pieces(file, check, piece_bytes):
                holding.end = max(holding.end, found[-1].last + 1)
                for one, offsets in _search_piece(piece, found, wanted, check).items():
                    holding.found.setdefault(one, []).extend(sorted(offsets))
    return holding


def _pieces(file: BinaryIO, check: Check, piece_bytes: int) -> Iterator[tuple[bytes, list[LogBatch]]]:
    """Yield the complete batches of a segment, some megabytes at a time, so that memory stays small.

    The file is read, not mapped: a broker may truncate it meanwhile, and access to a truncated page would raise SIGBUS.
    """
    rest = b""
    while more := file.read(piece_bytes):
        check()
        piece = rest + more
        found = list(batches(piece))
        if found:
            yield piece, found
        rest = piece[found[-1].position + found[-1].size :] if found else piece
        if len(rest) >= RECORDS_AT and LogBatch.parse(rest, 0).missing:
            return  # preallocated zeros: nothing follows


def _search_piece(
    piece: bytes, found: Sequence[LogBatch], wanted: Sequence[SoughtMessage], check: Check
) -> dict[SoughtMessage, set[int]]:
    offsets: dict[SoughtMessage, set[int]] = {}
    for one in wanted:
        for batch in _candidates(piece, found, one.needle):
            offsets.setdefault(one, set()).update(_offsets_of(one, records(piece, batch)))
    for batch in found:
        if batch.codec and not batch.control:  # compressed bytes cannot be searched
            check()
            within = records(piece, batch)
            for one in wanted:
                offsets.setdefault(one, set()).update(_offsets_of(one, within))
    return {one: at for one, at in offsets.items() if at}


def _candidates(piece: bytes, found: Sequence[LogBatch], needle: bytes) -> Iterator[LogBatch]:
    """Yield the uncompressed batches that contain these bytes: searching bytes is far quicker than reading records."""
    positions = [batch.position for batch in found]
    end = found[-1].position + found[-1].size
    at = -1
    while (at := piece.find(needle, at + 1, end)) >= 0:
        batch = found[bisect_right(positions, at) - 1]
        if not batch.codec and not batch.control:
            yield batch


def _offsets_of(one: SoughtMessage, within: Sequence[tuple[int, bytes | None]]) -> list[int]:
    """Return the offsets of the message, with its checksum compared: other bytes could look like its identity."""
    alike = [(offset, value) for offset, value in within if value is not None and value[8:32] == one.needle]
    _, flags = message.read_payloads([value for _, value in alike], one.run)
    return [offset for (offset, _), flag in zip(alike, flags, strict=True) if not flag & message.BAD_PAYLOAD]


def records(data: bytes, batch: LogBatch) -> list[tuple[int, bytes | None]]:
    """Return offset and value of each record of a batch."""
    (count,) = struct.unpack_from(">i", data, batch.position + RECORDS_AT - 4)
    body = data[batch.position + RECORDS_AT : batch.position + batch.size]
    if batch.codec:
        body = _decompress(body, batch.codec)
    found, at = [], 0
    try:
        for _ in range(count):
            length, at = _varint(body, at)
            following = at + length
            _, at = _varint(body, at + 1)  # attributes, time
            delta, at = _varint(body, at)
            key, at = _varint(body, at)
            value, at = _varint(body, at + max(key, 0))
            found.append((batch.base + delta, None if value < 0 else body[at : at + value]))
            at = following
    except (SerialError, ValueError, OverflowError):
        raise ClusterError(f"the batch of offset {batch.base} ends before its records") from None
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number and the position after it."""
    value, size = read_signed_varlong(data, at)
    return value, at + size


def _decompress(body: bytes, codec: int) -> bytes:
    import pyarrow as pa  # only needed for compressed batches

    name = _CODECS.get(codec, f"codec {codec}")
    try:
        if name == "snappy":
            return b"".join(_snappy(chunk) for chunk in _chunks(body))
        with pa.input_stream(pa.BufferReader(body), compression=name) as stream:
            return bytes(stream.read())
    except (pa.ArrowException, OSError, ValueError, SerialError, struct.error) as error:
        raise ClusterError(f"compressed with {name}, which cannot be read here: {error}") from error


def _snappy(chunk: bytes) -> bytes:
    import pyarrow as pa

    size, _ = read_unsigned_varint(chunk, 0)
    return bytes(pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True))


def _chunks(body: bytes) -> Iterator[bytes]:
    if not body.startswith(_XERIAL):
        yield body
        return
    at = _XERIAL_AT
    while at < len(body):
        (length,) = struct.unpack_from(">i", body, at)
        yield body[at + 4 : at + 4 + length]
        at += 4 + length
