"""Which findings are new tonight, known, gone or not asked for: planted histories, each with its clean opposite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.contracts import Verdict
from harness.trends.differences import Differences, FindingGroup, GroupState, differences
from tests.trends.histories import TONIGHT, quiet_nights, run_of, violated

LOST = FindingGroup("lost", "kill", "confluent")


def states(found: Differences) -> dict[FindingGroup, GroupState]:
    return {each.group: each.state for each in found.groups}


def test_a_finding_that_no_night_before_had_is_new() -> None:
    rows = quiet_nights()
    rows[-1] = violated(rows[-1])
    (found,) = differences(rows).groups
    assert (found.group, found.state) == (LOST, GroupState.NEW)
    assert ((found.tonight.found, found.tonight.runs), (found.before.found, found.before.runs)) == (
        (1, 6),
        (0, 60),
    )
    assert found.run_dirs == (rows[-1].run,)
    assert found.first_seen == rows[-1].date


def test_the_same_finding_is_known_when_a_night_before_had_it() -> None:
    rows = quiet_nights()
    rows[-1], rows[7] = violated(rows[-1]), violated(rows[7])
    (found,) = differences(rows).groups
    assert (found.state, found.first_seen) == (GroupState.KNOWN, rows[7].date)
    assert found.run_dirs == (rows[-1].run, rows[7].run)


@pytest.mark.parametrize(
    "other",
    [{"client": "java"}, {"faults": ("pause",)}, {"faults": ("kill", "pause")}],
    ids=["client", "fault", "two faults at once"],
)
def test_another_client_or_fault_is_another_finding(other: dict[str, object]) -> None:
    rows = [*quiet_nights(), violated(run_of(3, 50)), violated(run_of(TONIGHT, 50, **other))]
    assert next(iter(states(differences(rows)).values())) is GroupState.NEW


def test_another_anomaly_is_another_finding() -> None:
    rows = [*quiet_nights(), violated(run_of(3, 50)), violated(run_of(TONIGHT, 50), "duplicated")]
    assert states(differences(rows)) == {
        FindingGroup("duplicated", "kill", "confluent"): GroupState.NEW,
        LOST: GroupState.GONE,
    }


def test_a_finding_in_the_window_of_one_fault_belongs_to_that_fault() -> None:
    both = run_of(TONIGHT, 50, faults=("slow_disk", "kill"))
    rows = [*quiet_nights(), violated(run_of(3, 50)), violated(both, faults=("kill",))]
    assert states(differences(rows)) == {LOST: GroupState.KNOWN}


def test_gone_needs_a_night_that_asked() -> None:
    rows = [*quiet_nights(), violated(run_of(3, 50))]
    assert states(differences(rows)) == {LOST: GroupState.GONE}
    without = [row for row in rows if row.session != "n10"]
    for tonight in (
        run_of(TONIGHT, faults=("pause",)),
        run_of(TONIGHT, judged_as="exactly_once"),
        run_of(TONIGHT, client="java"),
        run_of(TONIGHT, verdict=str(Verdict.INCONCLUSIVE)),
        run_of(TONIGHT, planted=("lost",)),
        run_of(TONIGHT, canary=True),
    ):
        assert states(differences([*without, tonight])) == {LOST: GroupState.NOT_ASKED}, tonight


def test_a_finding_under_more_faults_at_once_is_not_gone_under_one_of_them() -> None:
    rows = [*quiet_nights(TONIGHT - 1), violated(run_of(3, 50))]
    rows += [violated(run_of(TONIGHT, 0, faults=("kill", "pause")))]
    assert states(differences(rows))[LOST] is GroupState.KNOWN


def test_canaries_planted_anomalies_and_doubtful_runs_are_no_findings() -> None:
    rows = quiet_nights()
    rows[-1] = replace(violated(rows[-1]), canary=True)
    rows[-2] = replace(violated(rows[-2]), planted=("lost",), expected=str(Verdict.VIOLATED))
    rows[-3] = replace(violated(rows[-3]), verdict=str(Verdict.INCONCLUSIVE))
    found = differences(rows)
    assert found.groups == ()
    assert (found.series[-1].violated, found.series[-1].inconclusive) == (0, 1)
    rows[-2] = replace(rows[-2], planted=("duplicated",))  # found something else than what it plants
    assert states(differences(rows)) == {LOST: GroupState.NEW}


def test_what_a_night_repeats_is_counted_once() -> None:
    rows = quiet_nights()
    rows[-1] = violated(rows[-1])
    rows += [replace(violated(run_of(TONIGHT, 90 + n)), kind="replay") for n in range(9)]
    (found,) = differences(rows).groups
    assert (found.tonight.found, found.tonight.runs) == (1, 6)
    assert differences(rows).series[-1].runs == 6
