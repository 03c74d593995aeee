"""A chart must not draw a line across an outage, nor lose a peak when a long run is thinned."""

from __future__ import annotations

from reports.timeline import Timeline


def test_a_missing_bucket_had_no_traffic() -> None:
    line = Timeline.read({"bucket_s": 0.5, "t_s": [1.0, 2.5], "acked": [5, 10], "latency_p50_ms": [1.0, 2.0]})
    assert line.acked == (10.0, 0.0, 0.0, 20.0)
    assert line.latency_p50_ms == (1.0, None, None, 2.0)
    assert (line.start_s, line.end_s) == (1.0, 3.0)


def test_buckets_may_come_in_any_order() -> None:
    line = Timeline.read({"bucket_s": 1.0, "t_s": [2.0, 0.0], "acked": [7, 3]})
    assert line.acked == (3.0, 0.0, 7.0)


def test_a_long_run_is_thinned_and_keeps_its_peaks() -> None:
    size = 10_000
    p99 = [2.0] * size
    p99[7777] = 900.0
    written = {
        "bucket_s": 0.25,
        "t_s": [i * 0.25 for i in range(size)],
        "acked": [100] * size,
        "latency_p99_ms": p99,
    }
    line = Timeline.read(written, most=1000)
    assert len(line) == 1000
    assert (line.merged, line.step_s) == (10, 2.5)
    assert set(line.acked) == {400.0}
    assert max(v or 0 for v in line.latency_p99_ms) == 900.0


def test_nothing_is_an_empty_timeline() -> None:
    assert len(Timeline.read({})) == 0
    assert len(Timeline.read({"t_s": [None, "x"], "acked": [1, 2]})) == 0


def test_values_that_are_not_numbers_are_left_out() -> None:
    line = Timeline.read(
        {"bucket_s": 1.0, "t_s": [0.0, 1.0], "acked": [None, 2], "latency_p99_ms": [float("nan"), 1]}
    )
    assert line.acked == (0.0, 2.0)
    assert line.latency_p99_ms == (None, 1.0)
