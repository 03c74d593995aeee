"""The answers of claims: as data, as an exit code, as lines of a terminal and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.claims.answers import as_data
from harness.claims.claim import Claim, ClaimAnswer, Curve, Measurements, Observation, Truth
from harness.cli import main
from harness.commands import claims as command
from reports import claims_page

HOSTILE = "<script>alert(1)</script>"


def answer(
    truth: Truth, expected: Truth = Truth.TRUE, statement: str = "It holds.", name: str = "ORD-1"
) -> ClaimAnswer:
    claim = Claim(
        id=name,
        statement=statement,
        expected=expected,
        condition="it rains" if expected is Truth.CONDITIONAL else "",
        why="Because.",
        setting="acks",
        case=lambda bench: Measurements.of(),
    )
    curves = (Curve("partitions", "seconds", ((10.0, 1.0), (100.0, 4.0))),)
    seen = Measurements((Observation("the leader is killed", True, "lost 3", run=Path("runs/a/1")),), curves)
    return ClaimAnswer(claim, truth, seen, 1.25)


@pytest.mark.parametrize(
    ("truths", "code"),
    [
        ([Truth.TRUE, Truth.TRUE], 0),
        ([Truth.TRUE, Truth.FALSE], 1),
        ([Truth.UNPROVEN, Truth.FALSE], 1),
        ([Truth.TRUE, Truth.UNPROVEN], 3),
        ([Truth.CONDITIONAL], 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_answer(truths: list[Truth], code: int) -> None:
    assert command.exit_code([answer(truth) for truth in truths]) == code


def test_the_answers_as_data() -> None:
    data = json.loads(json.dumps(as_data([answer(Truth.TRUE), answer(Truth.FALSE)])))
    assert (data["as_expected"], data["claims_total"]) == (1, 2)
    one = data["claims"][0]
    assert (one["id"], one["claim"], one["expected"], one["result"]) == ("ORD-1", "It holds.", "true", "true")
    assert one["evidence"] == [
        {
            "situation": "the leader is killed",
            "part": "stated",
            "holds": True,
            "numbers": "lost 3",
            "run_dir": "runs/a/1",
        }
    ]
    assert one["curves"] == [{"x": "partitions", "y": "seconds", "points": [[10.0, 1.0], [100.0, 4.0]]}]
    assert one["seconds"] == 1.2


def test_the_page_shows_every_answer_and_escapes_texts(tmp_path: Path) -> None:
    answers = [
        answer(Truth.TRUE, statement=HOSTILE),
        answer(Truth.FALSE),
        answer(Truth.CONDITIONAL, Truth.CONDITIONAL, name="DUR-2"),
    ]
    path = claims_page.write(tmp_path / "page.html", as_data(answers), {"kafka": "4.3.1"}, "2026-01-01")
    text = path.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "(expected: true)" in text
    assert "true only when it rains" in text
    assert "<polyline" in text
    assert "kafka 4.3.1" in text
    assert ("Order" in text, "Durability" in text) == (True, True)


def test_the_list_and_wrong_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--list", "DUR"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[0].startswith("DUR-1 ")
    assert main(["claims", "--list", "DUR-99"]) == 2
    assert "DUR-99: no claim and no group has this id" in capsys.readouterr().err
