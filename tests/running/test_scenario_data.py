"""Scenarios as plain data: every scenario of the project comes back from its description; wrong data is one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LedgerError, UsageError
from harness.running.scenario_data import scenario_at, scenario_of
from harness.scenario import Scenario
from suites.scenarios import fault_cases, groups, hazards, late_ends, matrix, pipelines

_ALL: tuple[Scenario, ...] = (
    *matrix.FULL,
    *pipelines.PIPELINES,
    *pipelines.WEAKER_PIPELINES,
    *pipelines.TRANSACTIONS,
    pipelines.soak(5),
    *groups.GROUP_RUNS,
    *fault_cases.scenarios(),
    *late_ends.WITHOUT_HOLD,
    late_ends.RANDOM,
    *(s for h in hazards.found().values() for s in (h.unsafe, h.safe) if s is not None),
)
EVERY = {scenario.name: scenario for scenario in _ALL}


def stored(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario as a file has it."""
    return json.loads(json.dumps(scenario.describe()))  # type: ignore[no-any-return]


@pytest.mark.parametrize("scenario", EVERY.values(), ids=EVERY)
def test_a_scenario_comes_back_from_its_description(scenario: Scenario) -> None:
    assert stored(scenario_of(stored(scenario))) == stored(scenario)


SMALL: dict[str, Any] = {
    "name": "mine",
    "mode": "at_least_once",
    "schedule": [{"fault": {"fault": "kill"}, "on": {"target": "leader", "partition": 0}}],
}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"mode": "sometimes"}, "scenario.mode: one of "),
        ({"mod": "at_least_once"}, "scenario.mod: unknown; similar: mode"),
        ({"mode": None}, "scenario.mode: one of "),
        ({"producers": 3}, "scenario.producers: a table"),
        ({"producers": {"acks": 1}}, "scenario.producers.acks: a text"),
        ({"producers": {"acks": "2"}}, "scenario.producers: "),
        ({"producers": {"records_per_s": True}}, "scenario.producers.records_per_s: a whole number"),
        ({"produce_s": "long"}, "scenario.produce_s: a number"),
        ({"observed": 1}, "scenario.observed: true or false"),
        ({"tolerates": "lost"}, "scenario.tolerates: a list"),
        ({"tolerates": [3]}, "scenario.tolerates[1]: a text"),
        ({"workload": "nothing"}, "scenario.workload: one of "),
        ({"schedule": {}}, "scenario.schedule: a list"),
        ({"schedule": [3]}, "scenario.schedule[1]: a table"),
        ({"schedule": [{"on": {"target": "leader"}}]}, "scenario.schedule[1].fault: missing"),
        ({"schedule": [{"fault": {}, "on": {}}]}, "scenario.schedule[1]: `fault` needs the key"),
        ({"schedule": [{"fault": {"fault": "kil"}, "on": {"target": "leader"}}]}, "scenario.schedule[1]: unknown fault"),
        ({"schedule": [{"fault": {"fault": "kill"}, "on": {"target": "leder"}}]}, "scenario.schedule[1]: unknown target"),
        ({"schedule": [{"fault": {"fault": "kill"}, "on": {"target": "leader"}, "hold_s": -1}]}, "scenario.schedule[1]: "),
        ({"schedule": [{"fault": {"fault": "kill"}, "on": {"target": "leader"}, "hold": 1}]}, "scenario.schedule[1].hold: unknown; similar: hold_s"),
        ({"expected": "VIOLATED"}, "scenario: Scenario.requires"),
        ({"requires": {"lost": 0}}, "scenario: "),
    ],
)  # fmt: skip
def test_wrong_data_is_one_line_that_names_the_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(UsageError) as error:
        scenario_of({**SMALL, **change})
    assert str(error.value).startswith(place)
    assert "\n" not in str(error.value)


def test_a_missing_name_is_named() -> None:
    with pytest.raises(UsageError, match=r"^scenario\.name: missing"):
        scenario_of({"mode": "at_least_once"})


def test_a_run_folder_has_its_scenario_in_one_of_two_files(tmp_path: Path) -> None:
    described = json.dumps(EVERY["at_least_once-kill-leader"].describe())
    (tmp_path / "manifest.json").write_text('{"scenario": ' + described + "}")
    assert scenario_at(tmp_path) == scenario_of(json.loads(described))
    changed = EVERY["at_least_once-kill-leader"].with_seed(5)
    (tmp_path / "scenario.json").write_text(json.dumps(changed.describe()))
    assert scenario_at(tmp_path).seed == scenario_at(tmp_path / "scenario.json").seed == 5


def test_a_folder_without_a_scenario_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"manifest.json: there is no such file \(is this a run folder"):
        scenario_at(tmp_path)


def test_the_folder_of_a_scenario_stands_for_its_first_run(tmp_path: Path) -> None:
    for number, name in enumerate(("20260101-120000", "20260101-120001"), 1):
        (tmp_path / name).mkdir()
        described = json.dumps(EVERY["at_least_once-kill-leader"].with_seed(number).describe())
        (tmp_path / name / "scenario.json").write_text(described)
        (tmp_path / name / "manifest.json").write_text("{}")
    assert scenario_at(tmp_path).seed == 1
    assert scenario_at(tmp_path / "20260101-120001").seed == 2
