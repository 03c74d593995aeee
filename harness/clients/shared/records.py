"""Records that were read, as rows of the ledger: identity and damage of each, from its payload and what is around it.

It knows no library: each adapter gives the `Getters` of the records of its library.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contracts import ConsumerSpec
from harness.ledger import message as msg
from harness.ledger.journal import now_ns
from harness.ledger.rows import DELIVERY, EFFECT

FULL_BATCH = 1000  # records; a reader that gets so many at once is behind, and compares a sample only
CREATED = 1  # the kind of a timestamp that the producer chose; all others are the broker's


@dataclass(frozen=True)
class Getters:
    """The functions that return a field of a record, methods of the library's class if it has them.

    A reader calls each of them for every record, so methods written in C save time.
    """

    partition: Callable[[Any], int | None]
    offset: Callable[[Any], int | None]
    key: Callable[[Any], bytes | None]
    timestamp: Callable[[Any], tuple[int, int]]  # kind, for example CREATED, and ms
    headers: Callable[[Any], object]  # a list of pairs of name and bytes


def delivery_rows(
    records: list[Any],
    values: list[Any],
    spec: ConsumerSpec,
    get: Getters,
    damaged: Collection[tuple[Any, Any]] = (),
) -> npt.NDArray[np.void]:
    """Return the records, whose payloads are `values`, as ledger rows.

    It works on whole columns at a time, since a Python loop would be the bottleneck.
    `damaged`: partition and first offset of batches with a wrong checksum.
    """
    fields, flags = msg.read_payloads(values, spec.run)
    rows = np.zeros(len(records), dtype=DELIVERY)
    rows["t"] = now_ns()
    rows["offset"] = np.fromiter(map(get.offset, records), np.int64, len(records))
    rows["partition"] = np.fromiter(map(get.partition, records), np.int16, len(records))
    rows["topic"], rows["intended_topic"] = spec.topic_number, fields["topic"]
    for name in ("seq", "session", "txn", "key"):
        rows[name] = fields[name]
    rows["intended_partition"], rows["intent"] = fields["partition"], fields["flags"]
    rows["leader_epoch"] = -1
    step = spec.compare_every if len(records) >= FULL_BATCH else 1
    flags[::step] |= _wrong_around(records[::step], values[::step], fields[::step], get)
    if damaged:
        places = zip(rows["partition"].tolist(), rows["offset"].tolist(), strict=True)
        flags |= _flag(msg.BAD_HEADER, [place in damaged for place in places])
    # If the payload is damaged or foreign, its other fields mean nothing.
    flags[(flags & msg.BAD_PAYLOAD) > 0] = msg.BAD_PAYLOAD
    rows["flags"] = flags
    return rows


def _wrong_around(records: list[Any], values: list[bytes | None], fields: Any, get: Getters) -> Any:
    """Return row flags for wrong keys, times and headers.

    Whole lists are compared first, which is quick; only a difference is examined record by record.
    """
    flags = np.zeros(len(records), dtype=np.uint8)
    keys, key_ids = each(get.key, records), fields["key"]
    without_keys = keys.count(None) == len(keys) and bool((key_ids < 0).all())
    if not without_keys and keys != (wanted_keys := each(_KEYS.__getitem__, key_ids.tolist())):
        flags |= _flag(msg.BAD_KEY, [a != b for a, b in zip(keys, wanted_keys, strict=True)])
    wanted_times = list(zip(repeat(CREATED), fields["timestamp_ms"].tolist(), strict=False))
    times = each(get.timestamp, records)
    if times != wanted_times:
        # With LogAppendTime the record has the broker's time by design: only create times can be compared.
        wrong = [a != b and a[0] == b[0] for a, b in zip(times, wanted_times, strict=True)]
        flags |= _flag(msg.BAD_TIMESTAMP, wrong)
    headers = each(get.headers, records)
    wanted_headers = [[(msg.HEADER_NAME, msg.header_of(v or b""))] for v in values]
    if headers != wanted_headers:
        flags |= _flag(msg.BAD_HEADER, [a != b for a, b in zip(headers, wanted_headers, strict=True)])
    return flags


def effects_in(rows: npt.NDArray[np.void], values: list[Any]) -> npt.NDArray[np.void]:
    """Return the records that are effects of inputs, with the inputs that they were made of."""
    which = np.flatnonzero(
        (rows["intent"] & msg.EFFECT > 0) & (rows["flags"] & (msg.BAD_PAYLOAD | msg.FOREIGN_RUN) == 0)
    )
    found = np.zeros(len(which), dtype=EFFECT)
    origins = msg.origins_of([values[i] for i in which])
    for name in ("offset", "seq", "session", "partition", "topic"):
        found[name] = rows[name][which]
        found[f"origin_{name}"] = origins[name]
    found["number"] = origins["number"]
    return found


class _KeyBytes(dict[int, bytes | None]):
    """The bytes of each key number, computed once."""

    def __missing__(self, key_id: int) -> bytes | None:
        self[key_id] = msg.key_bytes(key_id)
        return self[key_id]


_KEYS = _KeyBytes()


def each(call: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Return the results for all items; with a method written in C, in half the time of a comprehension."""
    return list(map(call, items))


def _flag(bit: int, where: Any) -> Any:
    return np.where(np.asarray(where, dtype=bool), bit, 0).astype(np.uint8)
