"""The files of suites/hazards/: each provokes the anomaly that it names, and its safe way has to hold."""

from __future__ import annotations

import pytest

from harness.contracts import Verdict
from harness.scenario import Scenario
from suites.scenarios.hazards import Hazard, Kind, found, of_prove

FOUND = found()
UNSAFE = {name: hazard.unsafe for name, hazard in FOUND.items() if hazard.unsafe}
SAFE = {name: hazard.safe for name, hazard in FOUND.items() if hazard.safe}


@pytest.mark.parametrize(("name", "unsafe"), UNSAFE.items(), ids=UNSAFE)
def test_a_hazard_is_named_after_its_file_and_is_violated(name: str, unsafe: Scenario) -> None:
    assert (unsafe.hazard, unsafe.name) == (name, f"control-{name}")
    assert (unsafe.expected, unsafe.control) == (Verdict.VIOLATED, True)
    assert unsafe.requires, "it has to name its anomaly"


@pytest.mark.parametrize(("name", "safe"), SAFE.items(), ids=SAFE)
def test_the_safe_way_has_to_hold(name: str, safe: Scenario) -> None:
    assert (safe.hazard, safe.name) == (name, f"safe-{name}")
    assert (safe.expected, safe.control) == (Verdict.HELD, True)
    assert safe.about == FOUND[name].about
    assert not safe.tolerates


@pytest.mark.parametrize(("name", "hazard"), FOUND.items(), ids=FOUND)
def test_a_hazard_has_a_safe_way_and_a_false_alarm_has_nothing_else(name: str, hazard: Hazard) -> None:
    assert hazard.safe is not None
    assert (hazard.unsafe is None) == (hazard.kind is Kind.FALSE_ALARMS)


@pytest.mark.parametrize(("name", "hazard"), FOUND.items(), ids=FOUND)
def test_the_texts_of_a_hazard_are_complete(name: str, hazard: Hazard) -> None:
    assert hazard.title[0].isupper() or hazard.title.startswith("acks")
    assert not hazard.title.endswith(".")
    assert hazard.at_risk
    assert hazard.cure.endswith(".")


def test_no_two_hazards_have_the_same_place_in_prove() -> None:
    places = sorted(hazard.place_in_prove for hazard in FOUND.values() if hazard.place_in_prove)
    assert places == list(range(1, len(places) + 1))
    assert len(of_prove()) == len(places)
