"""The line of progress counts what was done and has the time that is left, also of a night that was resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from harness.contracts import Mode
from harness.nights.journal import NightJournal
from harness.nights.night import Night
from harness.nights.plan import Plan
from harness.scenario import Scenario

NAMES = ("one", "two", "three", "four")
PLAN = Plan(7, 10.0, tuple(Scenario(name=name, mode=Mode.AT_LEAST_ONCE) for name in NAMES), "two")


def night(journal: NightJournal) -> Night:
    return Night(journal, cast(Any, None), lambda _: None)


def judged(journal: NightJournal, name: str, standing: str) -> None:
    journal.write("executed", scenario=name, run_dir=f"/{name}", seconds=20.0)
    journal.write(
        "judged",
        scenario=name,
        verdict="HELD",
        standing=standing,
        anomalies={},
        bitten=[],
        run_dir=f"/{name}",
    )


def test_a_night_that_begins_has_all_its_time(tmp_path: Path) -> None:
    line = night(NightJournal.begin(tmp_path, PLAN)).progress()
    assert line == "0 of 4 scenarios, 0 findings, 0 inconclusive, canary not found yet, 10.0 min left"


def test_skipped_and_stuck_scenarios_are_done(tmp_path: Path) -> None:
    journal = NightJournal.begin(tmp_path, PLAN)
    judged(journal, "one", "promise violated")
    judged(journal, "two", "as promised")
    journal.write("skipped", scenario="three", reason="no FUSE")
    journal.write("trouble", scenario="four", text="stuck")
    assert night(journal).progress().startswith("4 of 4 scenarios, 1 finding, 1 inconclusive, canary found, ")


def test_the_time_of_earlier_sessions_is_used_up(tmp_path: Path) -> None:
    journal = NightJournal.begin(tmp_path, PLAN)
    journal._before_s = 7.5 * 60  # as after --resume
    assert night(journal).progress().endswith(", 2.5 min left")
    journal._before_s = 11 * 60
    assert night(journal).progress().endswith(", 0.0 min left")
    judged(journal, "one", "proves nothing")
    assert night(NightJournal.resume(tmp_path)).progress().endswith(", 0.0 min left")


def test_a_longer_night_has_more_time(tmp_path: Path) -> None:
    assert (
        night(NightJournal.begin(tmp_path, replace(PLAN, minutes=480))).progress().endswith("480.0 min left")
    )
