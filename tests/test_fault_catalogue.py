"""The catalogue of faults: the list, and the document made from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import registry
from harness.cli import main
from harness.fault_catalogue import DOCUMENT, PUBLIC, as_markdown, catalogue, with_imports

FAULTS = set(registry.names("fault"))
GENERATE = "run .venv/bin/python -m harness.fault_catalogue"


def test_every_fault_describes_itself() -> None:
    for entry in catalogue():
        assert entry.what.endswith((".", "!")), f"{entry.name}: its docstring is not a sentence"
        assert entry.ways
        assert all(entry.ways.values()), f"{entry.name}: a way does not say what it needs"


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_the_class_has_the_name_of_its_file(name: str) -> None:
    expected = name.title().replace("_", "")
    assert registry.load("fault", name).__name__ == expected, f"faults/{name}.py: call the class {expected}"


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == as_markdown(catalogue()) + "\n", GENERATE


def test_type_checkers_see_every_fault() -> None:
    source = PUBLIC.read_text(encoding="utf-8")
    assert source == with_imports(source), GENERATE


def test_the_command_lists_all_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == FAULTS
    assert main(["faults", "--json"]) == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)} == FAULTS


def test_measured_effects_belong_to_existing_faults() -> None:
    measured = Path(__file__).parent.parent / "faults" / "measured.json"
    assert set(json.loads(measured.read_text(encoding="utf-8"))) <= FAULTS
