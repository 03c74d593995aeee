"""The table of claims in docs/claims.md, generated from the claims and the answers of the last run of all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.claims import listing
from reports import claims_page
from suites.support import claim_table
from suites.support.claim_table import (
    BEGIN,
    DOCUMENT,
    END,
    PICTURE,
    block,
    page_data,
    read_measured,
    replaced,
    stored,
)

CLAIMS = listing.found()
ANSWER = {
    "id": "ORD-1", "claim": "A statement.", "expected": "true", "result": "true", "as_expected": True, "why": "Because.",
    "setting": "acks", "curves": [], "seconds": 2.4,
    "evidence": [{"situation": "a", "part": "stated", "holds": True, "numbers": "7 read", "run_dir": "runs/x/1"}],
}  # fmt: skip


def test_the_document_has_the_table_of_the_claims() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert BEGIN in text
    assert text == replaced(text, CLAIMS, read_measured()), "run python -m suites.support.claim_table"


def test_stored_answers_are_the_expected_ones_of_claims_that_exist() -> None:
    answers = read_measured()["claims"]
    assert answers
    assert {name: answer["result"] for name, answer in answers.items()} == {
        name: CLAIMS[name].expected_text for name in answers
    }


def test_curves_are_measured_at_several_sizes() -> None:
    answers = read_measured()["claims"]
    curves = {name: [len(curve["points"]) for curve in answer["curves"]] for name, answer in answers.items()}
    assert {name: counts for name, counts in curves.items() if counts} == {"BAT-3": [5, 5], "CTL-5": [3, 3]}


def test_stored_answers_have_no_folders_and_make_the_page() -> None:
    assert "run_dir" not in json.dumps(stored(ANSWER))
    data = page_data(CLAIMS, read_measured())
    page = claims_page.page(data, {"kafka": "4.3.1"}, "2026-01-01")
    assert all(name in page for name in read_measured()["claims"])
    assert data["claims_total"] == len(read_measured()["claims"])


def test_the_picture_is_small() -> None:
    assert PICTURE.read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size < 300_000


def test_answers_are_stored_and_claims_that_do_not_exist_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, answers = tmp_path / "a.md", tmp_path / "answers.json"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    answers.write_text(json.dumps({"claims": [ANSWER, ANSWER | {"id": "GONE-1"}]}))
    monkeypatch.setattr(claim_table, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(claim_table, "DOCUMENT", document)
    claim_table.store([answers])
    assert set(read_measured()["claims"]) == {"ORD-1"}
    assert (
        "| ORD-1 | Order holds within a partition, not across a topic. | true | 2 |" in document.read_text()
    )
    assert "| not measured yet |" in block(CLAIMS, read_measured())
