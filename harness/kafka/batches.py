"""The record batches of a log: their headers, and whether their checksums match.

The format (record batches of magic 2) is the same since Kafka 0.11:

    0 i64 base offset   8 i32 length of the rest   12 i32 leader epoch   16 i8 magic   17 u32 crc
    21 i16 attributes   23 i32 last offset delta   …                     57 i32 count  61 records

A broker may append meanwhile: the last batch counts only if it is complete.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from harness.errors import ClusterError

RECORDS_AT = 61  # length of the header
_HEADER = struct.Struct(">qiibIhi")
_LENGTH_AFTER = 12  # bytes of a batch that its length does not count
_CHECKED_AT = 21  # the checksum covers the bytes from here on
_CONTROL, _CODEC = 0x20, 0x07


@dataclass(frozen=True)
class LogBatch:
    position: int  # in the file
    size: int
    base: int
    last: int
    leader_epoch: int
    magic: int
    crc: int  # as the header says
    codec: int
    control: bool  # a transaction marker: no records of clients

    @classmethod
    def parse(cls, header: bytes, position: int, at: int = 0) -> LogBatch:
        """Return the batch at `position` of its file, whose header begins at `at`."""
        base, length, epoch, magic, crc, attributes, delta = _HEADER.unpack_from(header, at)
        kind = attributes & _CODEC, bool(attributes & _CONTROL)
        return cls(position, _LENGTH_AFTER + length, base, base + delta, epoch, magic, crc, *kind)

    @property
    def missing(self) -> bool:
        """True if there is no batch: the log has ended, and preallocated zeros follow."""
        return self.size <= _LENGTH_AFTER

    def fits(self, end: int) -> bool:
        """Return whether the whole batch lies before `end`."""
        return not self.missing and self.position + self.size <= end


def batches(data: bytes) -> Iterator[LogBatch]:
    """Yield all complete batches, in order."""
    position = 0
    while position + RECORDS_AT <= len(data):
        batch = LogBatch.parse(data, position, position)
        if not batch.fits(len(data)):
            return
        if batch.magic != 2:
            raise ClusterError(
                f"a batch of format {batch.magic} for offset {batch.base}, where format 2 is expected"
            )
        yield batch
        position += batch.size


def batches_of(segment: Path) -> Iterator[LogBatch]:
    """Yield all complete batches of a segment. Only their headers are read."""
    with segment.open("rb") as file:
        end, position = segment.stat().st_size, 0
        while position + RECORDS_AT <= end:
            file.seek(position)
            batch = LogBatch.parse(file.read(RECORDS_AT), position)
            if not batch.fits(end):
                return
            yield batch
            position += batch.size


def bad_batches(segment: Path) -> list[LogBatch]:
    """Return the batches whose checksum is not that of their bytes."""
    with segment.open("rb") as file:

        def checksum(batch: LogBatch) -> int:
            file.seek(batch.position + _CHECKED_AT)
            return crc32c(file.read(batch.size - _CHECKED_AT))

        return [batch for batch in batches_of(segment) if checksum(batch) != batch.crc]
