"""Lines of broker logs around a moment: few, bounded, and nothing outside of the folder."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.reconcile.pictures import broker_log
from harness.reconcile.pictures.broker_log import AROUND_S, MOST_LINES, MOST_TEXT, WallClock, lines_around

UNIX = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
CLOCK = WallClock(UNIX, 0.0)
HOUR = 3600.0


def line(t_s: float, text: str, level: str = "INFO") -> str:
    at = datetime.fromtimestamp(UNIX + t_s, UTC)
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}] {level} {text} (kafka.server)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run" / "logs" / "cluster"
    made.mkdir(parents=True)
    return made


def texts(found: list[dict[str, object]]) -> list[str]:
    return [str(each["text"]).partition(" (")[0] for each in found]


def test_lines_within_two_seconds_in_order_of_time(folder: Path) -> None:
    (folder / "broker-1.log").write_text(
        line(1, "before") + line(9, "one") + line(10.5, "two") + line(13, "after")
    )
    (folder / "broker-2.log").write_text("no time\n" + line(10, "between") + "\tat a stack\n")
    found = lines_around(folder, CLOCK, 10.2, [])
    assert texts(found) == ["one", "between", "two"]
    assert [each["node"] for each in found] == ["broker-1", "broker-2", "broker-1"]
    assert found[0]["t_s"] == pytest.approx(9.0, abs=0.002)
    assert texts(lines_around(folder, CLOCK, 10.2, ["broker-2", "producer-1"])) == ["between"]
    assert texts(lines_around(folder, CLOCK, 10.2, ["producer-1"])) == ["one", "between", "two"]


def test_errors_and_warnings_displace_other_lines(folder: Path) -> None:
    many = "".join(line(10 + n / 1000, f"chatter {n}") for n in range(500))
    (folder / "broker-1.log").write_text(
        many + line(11.5, "leader lost", "ERROR") + line(11.9, "shrinking", "WARN")
    )
    found = lines_around(folder, CLOCK, 10.0, [])
    assert len(found) == MOST_LINES
    assert texts(found)[-2:] == ["leader lost", "shrinking"]
    assert texts(found)[0] == "chatter 0", "the others are those nearest to the moment"


def test_a_large_log_is_read_around_the_moment_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "broker-1.log").open("w") as file:
        file.writelines(line(n / 100, f"line {n}") for n in range(60_000))
    assert (folder / "broker-1.log").stat().st_size > 8 * broker_log.MOST_BYTES
    found = lines_around(folder, CLOCK, 300.0, [])
    assert len(found) == MOST_LINES
    assert {abs(float(str(each["t_s"])) - 300.0) < 0.1 for each in found} == {True}
    assert lines_around(folder, CLOCK, 5000.0, []) == []


@pytest.mark.parametrize(
    ("clock_offset_s", "written_s"), [(2 * HOUR, 2 * HOUR), (2 * HOUR, 0.0), (-5 * HOUR, -5 * HOUR)]
)
def test_logs_in_local_time_and_in_utc_are_both_understood(
    folder: Path, clock_offset_s: float, written_s: float
) -> None:
    """Brokers on this machine write local time, containers write UTC; the first line tells, which is of the run's start."""
    (folder / "broker-1.log").write_text(line(written_s + 1, "begins") + line(written_s + 50, "it"))
    found = lines_around(folder, WallClock(UNIX, clock_offset_s), 50.5, [])
    assert texts(found) == ["it"]
    assert found[0]["t_s"] == pytest.approx(50.0, abs=0.002)


def test_hostile_lines_are_short_and_printable(folder: Path) -> None:
    (folder / "broker-1.log").write_bytes(
        line(1, "\x1b[2J\u202e<script>" + "x" * 5000).encode() + b"[\xff] \n"
    )
    (shown,) = lines_around(folder, CLOCK, 1.0, [])
    assert str(shown["text"]).startswith("\\x1b[2J\\u202e<script>xxx")
    assert len(str(shown["text"])) == MOST_TEXT


def test_nothing_outside_is_read_and_nothing_is_waited_for(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(line(1, "secret"))
    (folder / "broker-1.log").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "broker-2.log")
    (folder / "broker-3.log").mkdir()
    (folder / "x; rm.log").write_text(line(1, "odd name"))
    assert lines_around(folder, CLOCK, 1.0, []) == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "broker-1.log").write_text(line(1, "secret"))
    linked = tmp_path / "other"
    linked.mkdir()
    (linked / "cluster").symlink_to(elsewhere)
    assert lines_around(linked / "cluster", CLOCK, 1.0, []) == []
    assert lines_around(tmp_path / "absent", CLOCK, 1.0, []) == []


def test_a_manifest_without_a_wall_clock_gives_no_lines() -> None:
    assert WallClock.of({"monotonic_ns": 1}) is None
    assert WallClock.of({"wall": "yesterday"}) is None
    assert WallClock.of({"wall": "2026-01-02T05:04:05+0200", "unix": 7.5}) == WallClock(7.5, 2 * HOUR)
    assert WallClock.of({"wall": "2026-01-02T05:04:05+0200"}) == WallClock(UNIX, 2 * HOUR)
    assert AROUND_S == 2.0
