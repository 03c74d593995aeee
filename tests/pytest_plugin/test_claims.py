"""Tests marked `claim`, in a folder of a user: answers, outcomes, the file of answers, and wrong markers; without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pytest_plugin.users import FAKES, ROOT, outcomes, run_pytest, write

TESTS = """
import pytest
from onceproof import Mode, Scenario


def judged(execute, verdict):
    assert execute(Scenario(name=f"{verdict}-x", mode=Mode.AT_LEAST_ONCE)).verdict == "HELD"


@pytest.mark.claim(id="TEAM-1", statement="It holds.", why="Because.", setting="acks")
@pytest.mark.parametrize("fault", ["kill", "sever"])
def test_true(execute, fault):
    judged(execute, "HELD")


@pytest.mark.claim(id="TEAM-2", statement="It fails.", expected="false")
def test_false(execute):
    judged(execute, "VIOLATED")


@pytest.mark.claim(id="TEAM-3", statement="It holds after all.", expected="false")
def test_differs(execute):
    judged(execute, "HELD")


@pytest.mark.claim(id="TEAM-4", statement="Nothing is proven.", expected="false")
def test_inconclusive(execute):
    judged(execute, "INCONCLUSIVE")


@pytest.mark.claim(id="TEAM-5", statement="Not here.")
def test_skipped():
    pytest.skip("not on this machine")


@pytest.mark.claim(id="TEAM-6", statement="An error is no answer.", expected="false")
def test_error():
    raise RuntimeError("no broker answered")


@pytest.mark.claim(id="TEAM-7", statement="Never two orders.")
def test_refuted():
    assert 1 == 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, conftest_py=FAKES, test_mine_py=TESTS)
    return tmp_path


def test_an_answer_that_is_not_the_expected_one_fails_its_test(folder: Path) -> None:
    done = run_pytest(folder, "--strict-markers", "-rf")
    assert outcomes(done) == {"passed": 3, "failed": 4, "skipped": 1}
    failed = {line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED ")}
    names = {"differs", "inconclusive", "error", "refuted"}
    assert failed == {f"test_mine.py::test_{name}" for name in names}


def test_the_answers_are_printed_and_written(folder: Path) -> None:
    done = run_pytest(folder, "--onceproof-claims", "answers.json")
    data = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    results = {row["id"]: (row["result"], row["as_expected"]) for row in data["claims"]}
    assert results == {
        "TEAM-1": ("true", True),
        "TEAM-2": ("false", True),
        "TEAM-3": ("true", False),
        "TEAM-4": ("unproven", False),
        "TEAM-5": ("unproven", False),
        "TEAM-6": ("unproven", False),
        "TEAM-7": ("false", False),
    }
    assert data["as_expected"] == 2
    first = data["claims"][0]
    assert (first["claim"], first["why"], first["setting"]) == ("It holds.", "Because.", "acks")
    assert [(e["situation"], e["holds"], e["run_dir"]) for e in first["evidence"]] == [
        ("test_true[kill]", True, "runs/x"),
        ("test_true[sever]", True, "runs/x"),
    ]
    assert "HELD, 7 acked, 7 lost" in first["evidence"][0]["numbers"]
    assert "TEAM-3: It holds after all. TRUE (EXPECTED false)" in done.stdout


def test_the_answers_as_a_page(folder: Path) -> None:
    done = run_pytest(folder, "--onceproof-claims", "answers.html", "-k", "true")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (folder / "answers.html").read_text(encoding="utf-8")
    assert "It holds." in page
    assert "TEAM-1" in page


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ('"TEAM-1"', "name the arguments, as in claim(id="),
        ('id="TEAM-1"', "claim: statement: a text is expected"),
        ('id="TEAM-1", statement="A", expect="true"', "claim: expect: unknown; available: id, statement"),
        ('id="TEAM-1", statement="A", expected=True', "claim: expected: a text is expected"),
        ('id="TEAM-1", statement="A", expected="maybe"', "claim: expected: true or false"),
    ],
)
def test_a_wrong_marker_is_one_line(tmp_path: Path, marker: str, says: str) -> None:
    write(tmp_path, test_mine_py=f"import pytest\n@pytest.mark.claim({marker})\ndef test_a(): pass\n")
    done = run_pytest(tmp_path)
    (line,) = (done.stdout + done.stderr).strip().splitlines()[-1:]
    assert done.returncode == 4
    assert line.startswith("ERROR: test_mine.py::test_a: claim")
    assert says in line


def test_one_id_for_two_statements_and_a_wrong_file_are_one_line(tmp_path: Path) -> None:
    one = '@pytest.mark.claim(id="T-1", statement="{}")\ndef test_{}(): pass\n'
    write(tmp_path, test_mine_py=f"import pytest\n{one.format('A', 'a')}{one.format('B', 'b')}")
    assert "test_b: claim T-1 exists twice" in run_pytest(tmp_path).stderr
    done = run_pytest(tmp_path, "-k", "test_a", "--onceproof-claims", "answers.txt")
    assert "--onceproof-claims" in done.stderr
    assert "the file ends with .html or .json" in done.stderr


def test_the_example_of_the_documentation_is_collected(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    write(tmp_path, test_example_py=text.partition("```python\n")[2].partition("```")[0])
    done = run_pytest(tmp_path, "--collect-only", "-q", "-m", "claim", "--strict-markers")
    assert done.stdout.splitlines()[0] == "test_example.py::test_orders_are_there_once"
