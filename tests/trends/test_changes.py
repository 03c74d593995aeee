"""Which rates and times changed beyond noise: planted histories, each with its clean opposite."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.trends.changes import EVERYTHING, RATE
from harness.trends.differences import Differences, FindingGroup, GroupState, differences
from harness.trends.row import Row
from tests.trends.histories import TONIGHT, noisy, quiet_nights, run_of, violated

LOST = FindingGroup("lost", "kill", "confluent")


def changed(found: Differences) -> set[tuple[str, str]]:
    return {(each.what, each.of) for each in found.changes}


def with_rate(rows: list[Row], before: int, tonight: int) -> list[Row]:
    """Return the rows with a finding in so many runs of 60 before, and of 6 tonight."""
    return [
        violated(row) if (row.session == "n10" and place - 60 < tonight) or place < before else row
        for place, row in enumerate(rows)
    ]


def test_a_rate_that_rose_beyond_noise_is_a_change() -> None:
    (change,) = differences(with_rate(quiet_nights(), 3, 5)).changes
    assert (change.what, change.of) == (RATE, str(LOST))
    assert change.before == 0.05
    assert change.tonight == pytest.approx(5 / 6)
    assert change.p < 0.001


@pytest.mark.parametrize("tonight", [0, 1, 2])
def test_a_rate_that_moved_within_noise_is_none(tonight: int) -> None:
    found = differences(with_rate(quiet_nights(), 6, tonight))
    assert (found.changes, found.unchanged) == ((), 6)


def test_slower_recovery_is_a_change() -> None:
    chance = random.Random(2)
    rows = [noisy(row, chance, 1.5 if row.session == "n10" else 1.0) for row in quiet_nights()]
    found = differences(rows)
    assert changed(found) == {(what, "fault kill, at_least_once") for what in ("recovery_s", "unavailable_s")}
    assert all(change.tonight > 1.3 * change.before for change in found.changes)
    assert "against 10 of 10 sessions" in found.changes[0].text


def test_times_of_the_same_distribution_are_no_change() -> None:
    alarms = sum(bool(differences(quiet_nights(seed=seed)).changes) for seed in range(60))
    assert alarms <= 2  # 1 % of the nights are expected


def test_a_slower_night_shows_in_all_faults_where_no_single_one_has_enough_runs() -> None:
    chance, kinds = (
        random.Random(3),
        ("kill", "pause", "sever", "starve", "slow_disk", "full_disk", "skew_clock"),
    )
    rows = [
        noisy(run_of(night, number, faults=(kind,)), chance, 1.4 if night == TONIGHT else 1.0)
        for night in range(TONIGHT + 1)
        for number, kind in enumerate(kinds)
    ]
    assert changed(differences(rows)) == {("recovery_s", EVERYTHING), ("unavailable_s", EVERYTHING)}


def test_windows_of_one_run_are_one_value() -> None:
    rows = [replace(row, recovery_s=row.recovery_s * 40) for row in quiet_nights()]
    assert differences(rows).unchanged == 5
    rows[-6:] = [replace(row, recovery_s=()) for row in rows[-6:]]
    rows[-1] = replace(rows[-1], recovery_s=(9.0,) * 40)
    found = differences(rows)
    assert (found.changes, found.unchanged) == ((), 4)  # one run is too few for a comparison


def test_other_machines_are_not_compared_by_their_times() -> None:
    chance = random.Random(2)
    rows = [
        replace(noisy(row, chance, 3.0), machine="a slow one") if row.session != "n10" else row
        for row in quiet_nights()
    ]
    found = differences(rows)
    assert (found.changes, found.unchanged, found.other_machines) == ((), 0, 60)
    rows[0] = violated(rows[0])
    (group,) = differences(rows).groups
    assert group.state is GroupState.GONE  # what is found does not depend on the machine
