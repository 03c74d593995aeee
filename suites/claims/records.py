"""Claims about single records."""

from __future__ import annotations

import os
import zlib

from harness.claims.bench import Bench
from harness.claims.claim import Claim, Measurements, Observation, Truth

RECORDS = 200
TIME_MS = 1_700_000_000_000


def round_trip(bench: Bench) -> Measurements:
    topic = bench.topic(partitions=1, extra={"message.timestamp.type": "CreateTime"})
    sent = [
        {
            "key": b"key-%d" % number if number % 3 else None,
            "value": os.urandom(100) if number % 5 else None,
            "timestamp": TIME_MS + number,
            "headers": [("n", b"%d" % number), ("n", b"twice")] if number % 2 else [],
        }
        for number in range(RECORDS)
    ]
    bench.send(topic, sent)
    read = bench.read(topic, RECORDS)

    def same(name: str, got: list[object]) -> Observation:
        wanted = [tuple(s[name]) if name == "headers" else s[name] for s in sent]  # type: ignore[arg-type]
        checksum = zlib.crc32(repr(got).encode())
        equal = sum(a == b for a, b in zip(wanted, got, strict=False))
        return Observation(name, wanted == got, f"{equal} of {RECORDS} equal, checksum {checksum:08x}")

    return Measurements.of(
        same("key", [r.key for r in read]),
        same("value", [r.value for r in read]),
        same("timestamp", [r.time_ms for r in read]),
        same("headers", [r.headers for r in read]),
        Observation("offset", [r.offset for r in read] == list(range(RECORDS)), f"0 to {len(read) - 1}"),
    )


claims = (
    Claim(
        id="REC-1", statement="A record has a key, a value, a timestamp and headers, and gets an offset.",
        expected=Truth.TRUE, setting="message.timestamp.type", case=round_trip, quick=True,
        why="Keys and values may be absent, header names may repeat; the broker adds only the offset (and the time, if so configured).",
    ),
)  # fmt: skip
