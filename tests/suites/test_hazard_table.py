"""The score of the catalogue in documents, generated from the folder of hazards and the last measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suites.scenarios.hazards import Kind, found
from suites.support import hazard_table
from suites.support.hazard_table import BEGIN, DOCUMENTS, END, block, read_measured, replaced, results

FOUND = found()
MARKED = [path for path in DOCUMENTS if BEGIN in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("document", MARKED, ids=lambda path: path.name)
def test_documents_have_the_score_of_the_folder(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert text == replaced(text, FOUND, read_measured()), "run python -m suites.support.hazard_table"


def test_the_page_of_the_catalogue_has_the_score() -> None:
    assert "catalogue.md" in {path.name for path in MARKED}


def test_the_page_of_the_catalogue_explains_every_class() -> None:
    (page,) = (path.read_text(encoding="utf-8") for path in MARKED if path.name == "catalogue.md")
    explained = page.partition("## Classes")[2]
    assert not [kind for kind in Kind if f"| {kind} | " not in explained]


def test_every_hazard_is_in_the_row_of_its_class() -> None:
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in block(FOUND, {}).splitlines()}
    for name, hazard in FOUND.items():
        assert f"`{name}`" in rows[hazard.kind]
    unsafe = sum(hazard.kind is not Kind.FALSE_ALARMS for hazard in FOUND.values())
    assert f"0 of {unsafe} caught" in block(FOUND, {})


def test_results_come_from_the_summary_of_the_command() -> None:
    summary = {
        "hazards": [{"id": "a", "caught": True, "control_held": False, "found": 7, "seconds": 12.5}],
        "false_alarms": [{"id": "gaps", "held": True, "seconds": 3.0}],
    }
    assert results(summary) == {
        "a": {"caught": True, "held": False, "found": 7, "seconds": 12.5},
        "gaps": {"held": True, "seconds": 3.0},
    }


def test_a_result_is_recorded_and_documents_without_marks_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked, plain, score = tmp_path / "a.md", tmp_path / "b.md", tmp_path / "score.json"
    marked.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    plain.write_text("as it was\n")
    row = {"id": "acks0_loss", "caught": True, "control_held": True, "found": 9, "seconds": 20.0}
    score.write_text(json.dumps({"hazards": [row, row | {"id": "gone"}], "false_alarms": []}))
    monkeypatch.setattr(hazard_table, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(hazard_table, "DOCUMENTS", (marked, plain))
    hazard_table.write([score])
    assert set(read_measured()) == {"acks0_loss"}, "hazards that do not exist any more are left out"
    text = marked.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "Measured: 1 of " in text
    assert plain.read_text() == "as it was\n"
