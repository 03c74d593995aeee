"""Messages: the format of payloads, and how whole batches are built and read at once.

A payload names its own run, session and sequence number, its intended topic and partition and the
intended end of its transaction, so that identity never comes from offsets. Everything in it is
covered by a checksum. All fields are little-endian:

    0  u32 magic        8  u64 run        16 u32 session   20 u32 txn (0: none)
    4  u32 length       24 u64 seq        32 i32 key       36 i16 partition (-1: none)
    38 u8 topic         39 u8 flags       40 i64 timestamp in ms
    48 u64 checksum     56 … filler to the wanted length, a multiple of 8

A message that a pipeline made of another one (an effect) carries its origin instead of the first words of filler:

    56 u32 session      60 i16 partition  62 u8 topic      63 u8 number of this effect, from 0 on
    64 u64 seq          72 i64 offset

The checksum is a sum over all words but its own, modulo 2^64. Each word is mixed before it is added: multiplied by an odd
constant, its upper half folded into the lower, multiplied by another odd constant, both constants different for each word.
Every step can be undone, so a change of any one word always changes the sum. The folding is what makes pairs of changes
count: without it bit 63 of a word only ever adds 2^63, and two of those are nothing. numpy computes it for a thousand payloads
at once, which a CRC in a Python loop cannot match.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAGIC = 0x3250_4F4F  # "OOP2": another number for another format
MIN_LENGTH = 64
MIN_EFFECT_LENGTH = 80
HEADER_NAME = "onceproof-id"
ABORT_INTENDED = 1  # flags bit: the transaction was meant to be aborted
EFFECT = 2  # flags bit: it was made of another message

FIELDS = np.dtype(
    {
        "names": ["magic", "length", "run", "session", "txn", "seq", "key", "partition", "topic", "flags",
                  "timestamp_ms", "checksum"],
        "formats": ["<u4", "<u4", "<u8", "<u4", "<u4", "<u8", "<i4", "<i2", "u1", "u1", "<i8", "<u8"],
        "offsets": [0, 4, 8, 16, 20, 24, 32, 36, 38, 39, 40, 48],
        "itemsize": 56,
    }
)  # fmt: skip
CHECKSUM_WORD = 6
ORIGIN = np.dtype(
    {
        "names": ["session", "partition", "topic", "number", "seq", "offset"],
        "formats": ["<u4", "<i2", "u1", "u1", "<u8", "<i8"],
        "itemsize": 24,
    }
)
_ORIGIN_WORDS = slice(7, 10)
_MIXED_AT_ONCE = 1 << 12  # words: few enough to stay in the cache of a core between two steps

# Row flags of a delivery (see harness.ledger.rows.DELIVERY): damage of the record.
BAD_PAYLOAD = 1  # not a payload of this format, or its checksum is wrong
BAD_KEY = 2
BAD_HEADER = 4
BAD_TIMESTAMP = 8
FOREIGN_RUN = 16  # intact, but sent by another run

Words = npt.NDArray[np.uint64]


class Message(NamedTuple):
    """One message as a client sends it. (A named tuple: making one is on the hot path.)"""

    session: int
    seq: int
    key_id: int  # -1: no key
    partition: int  # -1: chosen by the client
    txn: int
    timestamp_ms: int
    payload: bytes
    topic: int = 0  # its number in the run

    @property
    def key(self) -> bytes | None:
        return key_bytes(self.key_id)

    @property
    def header(self) -> bytes:
        return header_of(self.payload)


def message_id(producer: str, incarnation: int, seq: int) -> str:
    """Return the id that people read, such as `producer-1.0-42`."""
    return f"{producer}.{incarnation}-{seq}"


def run_number(run_id: str) -> int:
    """Return the number of the run in payloads: 64 bits derived from its id."""
    data = run_id.encode()
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1])


def key_bytes(key_id: int) -> bytes | None:
    return None if key_id < 0 else b"k%d" % key_id


def header_of(payload: bytes) -> bytes:
    """Return the header: session, transaction and sequence number as in the payload."""
    return payload[16:32]


@cache
def _multipliers(words: int) -> tuple[Words, Words]:
    """Return two odd constants for each word, from a fixed generator so that every version of Python agrees."""
    state = np.arange(1, 2 * words + 1, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    state ^= state >> np.uint64(29)
    state *= np.uint64(0xBF58_476D_1CE4_E5B9)
    mixed: Words = (state ^ (state >> np.uint64(32))) | np.uint64(1)
    before, after = mixed[:words], mixed[words:]
    after[CHECKSUM_WORD] = 0  # the checksum does not cover itself
    return before, after


def checksums(words: Words) -> Words:
    """Return the checksum that each row of a matrix of payload words should have."""
    before, after = _multipliers(words.shape[1])
    rows_each = max(1, _MIXED_AT_ONCE // words.shape[1])
    found = np.empty(len(words), dtype=np.uint64)
    for first in range(0, len(words), rows_each):
        mixed = words[first : first + rows_each] * before
        mixed ^= mixed >> np.uint64(32)
        np.matmul(mixed, after, out=found[first : first + rows_each])
    return found


class Builder:
    """A builder of payloads for consecutive sequence numbers of one session, many at a time."""

    def __init__(self, run: int, session: int, length: int) -> None:
        if length < MIN_LENGTH or length % 8:
            raise ValueError(f"payload length {length}: a multiple of 8, at least {MIN_LENGTH}, is needed")
        self.run, self.session, self.length = run, session, length

    def build(
        self,
        first_seq: int,
        keys: npt.ArrayLike,
        partitions: npt.ArrayLike,
        timestamp_ms: int,
        txn: int = 0,
        abort_intended: bool = False,
        topics: npt.ArrayLike = 0,
        origins: npt.NDArray[np.void] | None = None,
    ) -> list[Message]:
        """Return messages first_seq, first_seq + 1, … with the given keys and partitions (-1: none).

        `origins`, rows of ORIGIN, make them effects of other messages.
        """
        if origins is not None and self.length < MIN_EFFECT_LENGTH:
            raise ValueError(f"payload length {self.length}: an effect needs at least {MIN_EFFECT_LENGTH}")
        key_ids = np.asarray(keys, dtype=np.int32)
        places = np.asarray(partitions, dtype=np.int16)
        count = len(key_ids)
        seqs = np.arange(first_seq, first_seq + count, dtype=np.uint64)
        words = np.zeros((count, self.length // 8), dtype=np.uint64)
        # The filler differs from message to message so that a swapped tail is seen.
        words[:, 7:] = (seqs * np.uint64(0x9E37_79B9_7F4A_7C15))[:, None]
        rows = np.ndarray(count, dtype=FIELDS, buffer=words, strides=(self.length,))
        rows["magic"], rows["length"], rows["run"] = MAGIC, self.length, self.run
        rows["session"], rows["txn"], rows["seq"] = self.session, txn, seqs
        rows["key"], rows["partition"], rows["topic"] = key_ids, places, topics
        rows["flags"] = (ABORT_INTENDED if abort_intended else 0) | (EFFECT if origins is not None else 0)
        if origins is not None:
            words[:, _ORIGIN_WORDS] = (
                np.ascontiguousarray(origins, dtype=ORIGIN).view(np.uint64).reshape(-1, 3)
            )
        rows["timestamp_ms"] = timestamp_ms
        rows["checksum"] = checksums(words)
        blob, size = words.tobytes(), self.length
        return [
            Message(
                self.session,
                first_seq + i,
                key,
                place,
                txn,
                timestamp_ms,
                blob[i * size : i * size + size],
                topic,
            )
            for i, (key, place, topic) in enumerate(
                zip(key_ids.tolist(), places.tolist(), rows["topic"].tolist(), strict=True)
            )
        ]


def fields_of(messages: Sequence[Message]) -> npt.NDArray[np.void]:
    """Return the fields of messages of one length that were built here, as rows of FIELDS."""
    blob = b"".join([message.payload for message in messages])
    return np.ndarray(len(messages), dtype=FIELDS, buffer=blob, strides=(len(messages[0].payload),))


def origins_of(values: Sequence[bytes]) -> npt.NDArray[np.void]:
    """Return the origins of intact effects, as rows of ORIGIN."""
    return np.frombuffer(b"".join(value[56:80] for value in values), dtype=ORIGIN)


def read_payloads(
    values: Sequence[bytes | None], run: int
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint8]]:
    """Return fields and row flags of each payload. A payload that is not intact has BAD_PAYLOAD and zero fields."""
    count = len(values)
    if count == 0:
        return np.zeros(0, dtype=FIELDS), np.zeros(0, dtype=np.uint8)
    first = values[0]
    length = len(first) if first is not None else 0
    if length >= MIN_LENGTH and length % 8 == 0:
        try:
            blob = b"".join(values)  # type: ignore[arg-type]
        except TypeError:  # one of them has no value at all
            blob = b""
        if len(blob) == count * length and _all_lengths(values, length):
            return _read_matrix(np.frombuffer(blob, dtype=np.uint64).reshape(count, -1), length, run)
    # Different lengths are rare (several payload sizes, damage), so one by one is fast enough.
    fields, flags = np.zeros(count, dtype=FIELDS), np.full(count, BAD_PAYLOAD, dtype=np.uint8)
    for i, value in enumerate(values):
        if value is not None and len(value) >= MIN_LENGTH and len(value) % 8 == 0:
            row = np.frombuffer(value, dtype=np.uint64).reshape(1, -1)
            one, flag = _read_matrix(row, len(value), run)
            fields[i], flags[i] = one[0], flag[0]
    return fields, flags


def _all_lengths(values: Sequence[bytes | None], length: int) -> bool:
    # The total is right already; only a mixture of shorter and longer payloads could still have it.
    return set(map(len, values)) == {length}  # type: ignore[arg-type]


def _read_matrix(words: Words, length: int, run: int) -> tuple[npt.NDArray[np.void], npt.NDArray[np.uint8]]:
    rows = np.ndarray(len(words), dtype=FIELDS, buffer=words.data, strides=(length,))
    intact = (rows["magic"] == MAGIC) & (rows["length"] == length) & (rows["checksum"] == checksums(words))
    flags = np.where(intact, 0, BAD_PAYLOAD).astype(np.uint8)
    flags[intact & (rows["run"] != run)] |= FOREIGN_RUN
    # The same as rows.copy(), which would go through the fields one by one.
    fields = words[:, : FIELDS.itemsize // 8].copy().view(FIELDS).reshape(-1)
    if not intact.all():
        fields[~intact] = np.zeros(1, dtype=FIELDS)[0]
    return fields, flags
