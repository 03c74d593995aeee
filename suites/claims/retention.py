"""Claims about retention."""

from __future__ import annotations

import time
from statistics import median

from harness.claims.bench import Bench
from harness.claims.claim import Claim, ClusterNeeds, Measurements, Observation, Truth
from harness.errors import WaitTimeout
from harness.kafka.admin import Administrator
from harness.waiting import wait_until

CHECKED_EVERY = {"log.retention.check.interval.ms": "500", "log.segment.delete.delay.ms": "100"}
REMOVED_LIMIT_S = 60.0
SEGMENT_BYTES = 1024 * 1024  # the least that brokers accept
VALUE = b"x" * 1000
ROUNDS = 9
SAME = 1.3  # ratio of times
DAY_MS, YOUNG_FOR_MS = 86_400_000, 1_800_000  # brokers accept no timestamps more than an hour ahead


def removed(bench: Bench, **extra: object) -> tuple[int, int]:
    """Fill two segments, begin a third, and return the log's start and end after retention has removed something.

    No group reads the topic. (0, end): nothing was removed in time.
    """
    topic = bench.topic(partitions=1, extra={"segment.bytes": SEGMENT_BYTES, **extra})
    count = 2 * SEGMENT_BYTES // len(VALUE) + 100
    bench.send(topic, [{"value": VALUE} for _ in range(count)])
    administrator = Administrator(bench.cluster, topic)
    try:
        wait_until(lambda: administrator.offsets()[0][0] > 0, REMOVED_LIMIT_S, "nothing was removed")
    except WaitTimeout:
        return 0, administrator.offsets()[0][1]
    time.sleep(2.0)  # several more checks of the broker
    return administrator.offsets()[0]


def by_time_and_size(bench: Bench) -> Measurements:
    mixed = bench.topic(partitions=1, extra={"segment.bytes": SEGMENT_BYTES, "retention.ms": 1000})
    now_ms = round(time.time() * 1000)
    times = [*[now_ms - DAY_MS] * 10, now_ms + YOUNG_FOR_MS]
    bench.send(mixed, [{"value": VALUE, "timestamp": ms} for ms in times])
    by_time = removed(bench, **{"retention.ms": 1000})
    by_size = removed(bench, **{"retention.bytes": SEGMENT_BYTES})
    kept = bench.topic(partitions=1)
    bench.send(kept, [{"value": VALUE} for _ in range(10)])
    bounds = Administrator(bench.cluster, mixed).offsets()[0]
    return Measurements.of(
        _shown("by time, unread", by_time),
        _shown("by size, unread", by_size),
        Observation("per segment: records that are too old stay beside one that is not", bounds == (0, len(times)),
                    f"retention.ms=1000: 10 records of yesterday and a young one in one segment, {bounds[0]} of {bounds[1]} removed"),
        Observation("with the default retention nothing is removed",
                    Administrator(bench.cluster, kept).offsets()[0] == (0, 10), "10 of 10 records"),
    )  # fmt: skip


def _shown(situation: str, bounds: tuple[int, int]) -> Observation:
    start, end = bounds
    return Observation(situation, start > 0, f"{start:,} of {end:,} records were removed")


def length_and_speed(bench: Bench) -> Measurements:
    """Produce to an empty log and to one with many segments, in turns; each round gives a ratio."""
    short = bench.topic(partitions=1)
    long = bench.topic(partitions=1, extra={"segment.bytes": SEGMENT_BYTES})
    bench.send(long, [{"value": VALUE} for _ in range(50_000)])
    times: dict[str, list[float]] = {short: [], long: []}
    for _ in range(ROUNDS):
        for topic in (short, long):
            began = time.perf_counter()
            bench.send(topic, [{"value": VALUE} for _ in range(5_000)])
            times[topic].append(time.perf_counter() - began)
    ratios = sorted(of_long / of_short for of_short, of_long in zip(times[short], times[long], strict=True))
    evidence = f"50 MB against an empty log: {median(ratios):.2f} times the time; {ROUNDS} rounds, {ratios[0]:.2f} to {ratios[-1]:.2f}"
    equal, slower = median(ratios) < SAME, ratios[1] >= SAME
    # Rounds that disagree say nothing: the machine did other work.
    return Measurements.of(
        Observation("producing to a short and to a long log", equal if equal or slower else None, evidence)
    )


claims = (
    Claim(
        id="RET-1", statement="Retention removes old messages by time or by size, read or not.", expected=Truth.TRUE,
        setting="retention.ms, retention.bytes, segment.bytes", case=by_time_and_size,
        why="It removes whole segments, never single records: one young record keeps its whole segment. Reading plays no part.",
        clusters=(ClusterNeeds(settings=CHECKED_EVERY),),
    ),
    Claim(
        id="RET-2", statement="The length of retention does not change the speed.", expected=Truth.TRUE,
        setting="retention.ms", case=length_and_speed, why="Writing appends to the newest segment, however many there are.",
    ),
)  # fmt: skip
