"""Which runs are compared: sessions by age, kind, name and version; and the series that they make."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.trends.differences import GroupState, differences
from tests.trends.histories import TONIGHT, noisy, quiet_nights, run_of, violated


def test_quiet_nights_differ_in_nothing() -> None:
    found = differences(quiet_nights())
    assert (found.groups, found.changes) == ((), ())
    assert found.unchanged == 5  # times
    assert (found.session, found.runs) == ("n10", 6)
    assert found.baseline_sessions == tuple(f"n{night}" for night in range(TONIGHT))


def test_only_sessions_of_its_kind_in_the_days_before_count() -> None:
    rows = [
        *quiet_nights(20),
        violated(
            run_of(
                19,
                50,
                kind="pytest",
            )
        ),
    ]
    rows[-1] = replace(rows[-1], session="p19")
    found = differences(rows, days=14)
    assert found.baseline_sessions == tuple(f"n{night}" for night in range(6, 20))
    assert found.groups == ()
    assert differences(rows, days=3).baseline_sessions == ("n17", "n18", "n19")


def test_the_newest_night_is_compared_also_if_another_session_is_newer() -> None:
    later = [replace(run_of(TONIGHT + 1), session="prove-1", kind="prove")]
    assert differences([*quiet_nights(), *later]).session == "n10"
    assert differences(later).session == "prove-1"
    replay = replace(run_of(TONIGHT + 2), session="replay-1", kind="replay")
    assert differences([*later, replay]).session == "prove-1"
    assert differences([replay]).session == "replay-1"


def test_a_session_can_be_named_by_its_id_or_date() -> None:
    rows = quiet_nights()
    assert differences(rows, session="n4").baseline_sessions == ("n0", "n1", "n2", "n3")
    assert differences(rows, session=rows[24].date).session == "n4"
    assert differences(rows, against="n4").baseline_sessions == ("n4",)
    assert differences(rows, against=rows[24].date).baseline_sessions == ("n4",)


def test_a_version_splits_the_runs() -> None:
    chance = random.Random(4)
    rows = [
        noisy(
            replace(row, kafka_version="4.3.1" if place % 2 else "4.2.0"), chance, 1.0 if place % 2 else 0.5
        )
        for place, row in enumerate(quiet_nights(runs=12))
    ]
    rows[-1] = violated(rows[-1])
    found = differences(rows, against="4.2.0")
    assert found.runs == 6
    assert found.baseline_sessions[-1] == "n10"
    assert [each.state for each in found.groups] == [GroupState.NEW]
    assert "recovery_s" in [each.what for each in found.changes]


@pytest.mark.parametrize("name", ["n99", "2026-02-30", "0.1", ""])
def test_unknown_names_list_what_there_is(name: str) -> None:
    with pytest.raises(UsageError, match=r"n9 \(.*versions: 2\.12\.1, 4\.3\.1"):
        differences(quiet_nights(), against=name)
    with pytest.raises(UsageError, match=r"no such session; the newest are n10"):
        differences(quiet_nights(), session=name)


def test_a_version_that_all_runs_have_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="have this version"):
        differences(quiet_nights(), against="4.3.1")
    with pytest.raises(UsageError, match="no runs"):
        differences([])


def test_the_series_has_a_point_for_each_session_with_a_run_to_open() -> None:
    rows = quiet_nights()
    rows[-2] = violated(rows[-2])
    found = differences(rows, days=2).series
    assert [each.session for each in found] == ["n8", "n9", "n10"]
    assert (found[-1].runs, found[-1].violated, found[-1].run_dir) == (6, 1, rows[-2].run)
    assert found[0].run_dir == rows[48].run
    assert found[0].recovery_s == pytest.approx(4.0, abs=0.6)
    assert found[0].throughput_per_s == pytest.approx(900, abs=60)
