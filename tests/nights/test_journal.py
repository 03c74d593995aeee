"""The journal of a night: nothing is lost, nothing runs twice, a torn line never happened; and the coverage that follows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faults.kill import Kill
from harness.contracts import Mode, Verdict
from harness.errors import LedgerError, UsageError
from harness.nights.coverage import Exercised, PairCoverage, combinations, combined, share_of_new
from harness.nights.journal import FILE, NIGHTS, NightJournal, earlier, read
from harness.nights.plan import Plan
from harness.scenario import ProducerSettings, Scenario
from harness.schedule import once
from harness.targets import leader_of

NAMES = ("one", "two", "three", "four")
KILLED = once(Kill(), on=leader_of(0))
PLAN = Plan(7, 5.0, tuple(Scenario(name=n, mode=Mode.AT_LEAST_ONCE, schedule=KILLED) for n in NAMES), "two")


def judged(journal: NightJournal, name: str, standing: str = "as promised", verdict: str = "HELD") -> None:
    journal.write(
        "judged",
        scenario=name,
        verdict=verdict,
        standing=standing,
        anomalies={},
        bitten=[True],
        run_dir=f"/{name}",
    )


def half_a_night(runs: Path) -> NightJournal:
    journal = NightJournal.begin(runs, PLAN)
    for name in ("one", "two"):
        journal.write("began", scenario=name)
        journal.write("executed", scenario=name, run_dir=f"/{name}", seconds=12.0)
    judged(journal, "one")
    journal.write("began", scenario="three")
    return journal


def test_a_killed_night_resumes_with_what_its_lines_say(tmp_path: Path) -> None:
    before = half_a_night(tmp_path)
    with before.file.open("ab") as file:
        file.write(b'{"event": "executed", "scenario": "thr')  # torn by SIGKILL
    resumed = NightJournal.resume(tmp_path)
    state = resumed.state
    assert state.plan == PLAN
    assert state.done == {"one", "two"}, "three was cut and runs again; nothing else does"
    assert state.cut == ["three"]
    assert state.to_judge == {"two": "/two"}
    assert 0 < state.used_s <= resumed.used_s
    judged(resumed, "two", verdict="VIOLATED")
    assert read(resumed.file).canary_found
    assert not read(resumed.file).to_judge


def test_a_scenario_that_was_cut_twice_counts_once(tmp_path: Path) -> None:
    half_a_night(tmp_path)
    NightJournal.resume(tmp_path).write("began", scenario="three")
    journal = NightJournal.resume(tmp_path)
    assert journal.state.cut == ["three"]
    journal.write("began", scenario="three")
    journal.write("executed", scenario="three", run_dir="/three", seconds=3)
    assert NightJournal.resume(tmp_path).state.cut == ["three"]


def test_the_time_of_all_sessions_counts(tmp_path: Path) -> None:
    journal = half_a_night(tmp_path)
    with journal.file.open("a") as file:
        file.write(
            json.dumps({"event": "skipped", "used_s": 200.0, "scenario": "four", "reason": "no FUSE"}) + "\n"
        )
    resumed = NightJournal.resume(tmp_path)
    assert resumed.used_s >= 200.0
    assert resumed.state.skipped == {"four": "no FUSE"}


def test_an_ended_night_is_not_resumed(tmp_path: Path) -> None:
    half_a_night(tmp_path).write("ended")
    with pytest.raises(UsageError, match="no unfinished night"):
        NightJournal.resume(tmp_path)


@pytest.mark.parametrize("content", ["", "{}\n", "no json\n", '{"event": "night", "seed": 1}\n'])
def test_a_file_that_is_no_journal_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(LedgerError, match="not the journal of a night") as caught:
        read(tmp_path / FILE)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "damage",
    [{"scenario": "none of the plan"}, {"anomalies": 7}, {"bitten": None}, {"anomalies": {"lost": "many"}}],
    ids=str,
)
def test_a_damaged_verdict_is_one_line(damage: dict[str, object], tmp_path: Path) -> None:
    journal = half_a_night(tmp_path)
    events = map(json.loads, journal.file.read_text().splitlines())
    event = next(each for each in events if each["event"] == "judged")
    with journal.file.open("a") as file:
        file.write(json.dumps({**event, **damage}) + "\n")
    with pytest.raises(LedgerError, match="not the journal of a night"):
        read(journal.file)
    assert earlier(tmp_path) == [], "it does not stop other nights"


def test_standings_sort_into_findings_and_inconclusive(tmp_path: Path) -> None:
    journal = half_a_night(tmp_path)
    journal.write("trouble", scenario="three", text="stuck", run_dir="/three")
    journal.write("executed", scenario="four", run_dir="/four", seconds=1)
    judged(journal, "four", "promise violated", "VIOLATED")
    judged(journal, "two", "not caught")
    state = journal.state
    assert (state.findings, state.inconclusive, state.canary_found) == (["four"], ["three"], False)


def test_coverage_follows_from_the_journals_of_all_nights(tmp_path: Path) -> None:
    half_a_night(tmp_path)
    broken = tmp_path / NIGHTS / "0"
    broken.mkdir()
    (broken / FILE).write_text("torn")
    found = PairCoverage.of(earlier(tmp_path))
    assert found.bit[combined(("fault", "kill"), ("mode", "at_least_once"))] == 1
    assert found.bit[combined(("fault", "kill"), ("target", "leader"))] == 1


def test_a_fault_without_effect_covers_nothing() -> None:
    scenario = PLAN.scenarios[0]
    found = PairCoverage.of([Exercised(scenario, [False], conclusive=False)])
    assert (
        sum(found.exercised.values()) == len([each for each in combinations(scenario) if len(each) == 2]) > 50
    )
    assert not found.bit
    data = found.as_data({combined(("fault", "kill"), ("mode", "at_least_once"))})
    assert data["uncovered"] == ["fault kill x mode at_least_once"]


def test_settings_are_part_of_pairs() -> None:
    scenario = Scenario(name="x", mode=Mode.IDEMPOTENT, producers=ProducerSettings(compression="zstd"))
    assert combined(("mode", "idempotent"), ("setting", "compression=zstd")) in combinations(scenario)
    assert share_of_new(scenario, set()) == 1.0
    assert share_of_new(scenario, combinations(scenario)) == 0.0


def test_verdicts_are_the_texts_of_journals() -> None:
    assert {str(each) for each in Verdict} == {"HELD", "VIOLATED", "INCONCLUSIVE"}
