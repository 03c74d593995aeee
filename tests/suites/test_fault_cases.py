"""The faults under load: each fault brings its cases, and no two have the same name."""

from __future__ import annotations

from importlib import import_module

import pytest

from harness import registry
from suites.scenarios.fault_cases import scenarios


@pytest.mark.parametrize("name", registry.names("fault"))
def test_every_fault_brings_its_cases(name: str) -> None:
    cases = getattr(import_module(f"faults.{name}"), "cases", None)
    assert cases is not None, (
        f"faults/{name}.py: add `cases = (Case({name.title().replace('_', '')}(), leader_of(0)),)`"
    )
    for case in cases:
        assert case.word.split("-")[0] == name == case.fault.describe()["fault"]


def test_no_two_scenarios_have_the_same_name() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(set(names)) == len(names) > len(registry.names("fault"))
