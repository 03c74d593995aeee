"""The files of suites/hazards/: each control provokes what its file is named after, each safe way forbids it."""

from __future__ import annotations

import pytest

from harness.contracts import Verdict
from suites.scenarios.hazards import Hazard, found, of_prove


@pytest.mark.parametrize(("name", "hazard"), found().items())
def test_a_hazard_is_named_after_its_file_and_is_violated(name: str, hazard: Hazard) -> None:
    control = hazard.control
    assert (control.hazard, control.name) == (name, f"control-{name}")
    assert (control.expected, control.control) == (Verdict.VIOLATED, True)
    assert control.requires, "it has to name its anomaly"


@pytest.mark.parametrize("hazard", [h for h in found().values() if h.safe], ids=lambda h: h.control.hazard)
def test_the_safe_way_has_to_hold_under_the_same_faults(hazard: Hazard) -> None:
    assert hazard.safe is not None
    assert hazard.safe.expected is Verdict.HELD
    assert not hazard.safe.requires
    assert not hazard.safe.tolerates
    assert hazard.safe.schedule == hazard.control.schedule
    assert hazard.safe.name.startswith("safe-")


def test_no_two_hazards_have_the_same_place_in_prove() -> None:
    places = sorted(hazard.place_in_prove for hazard in found().values() if hazard.place_in_prove)
    assert places == list(range(1, len(places) + 1))
    assert len(of_prove()) == len(places)
