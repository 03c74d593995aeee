"""JUnit files have a case per run with the reasons of those that are not as promised, whatever texts they contain."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports.ci.junit import ERROR, FAILURE, SKIPPED, Case, cases, document, write
from reports.course import INTERRUPTED, Course
from reports.summary import read
from tests.reports.sample import sample_runs

BROKEN, UNPROVEN = "at_least_once-kill-leader", "exactly_once-kill-leader"
HOSTILE = '</failure><script>"&\x00\x1b[31m\u202e\ufffe\ud800 ]]>'
STARTED = "2026-01-02T03:04:05"


def parsed(
    root: Path, course: Course | None = None, text: str = "", more: tuple[Case, ...] = ()
) -> ElementTree.Element:
    runs = read(sample_runs(root, broken=[BROKEN], quiet=[UNPROVEN], text=text))
    return ElementTree.fromstring(document("a night", STARTED, [*cases(runs, course or Course(13)), *more]))


def case(root: ElementTree.Element, name: str) -> ElementTree.Element:
    found = root.find(f"testsuite/testcase[@name='{name}']")
    assert found is not None
    return found


def test_a_run_as_promised_passes_with_its_numbers(tmp_path: Path) -> None:
    found = case(
        parsed(tmp_path, Course(13, seconds={"at_most_once-kill-leader": 12.5})), "at_most_once-kill-leader"
    )
    assert (found.get("classname"), found.get("time")) == ("onceproof.at_most_once", "12.500")
    assert [child.tag for child in found] == ["properties"]
    properties = {each.get("name"): each.get("value") for each in found.iter("property")}
    assert (properties["lost"], properties["verdict"], properties["seed"]) == ("214", "HELD", "7")
    assert Path(str(properties["run_dir"])).is_dir()


def test_a_violated_promise_is_a_failure_with_its_reasons_and_its_command(tmp_path: Path) -> None:
    failure = case(parsed(tmp_path), BROKEN).find(FAILURE)
    assert failure is not None
    assert failure.get("type") == "VIOLATED"
    assert str(failure.get("message")).startswith("promise violated: lost x 17: ")
    assert "\nrepeat: ./onceproof" in f"\n{failure.text}"


def test_a_run_that_proves_nothing_is_an_error(tmp_path: Path) -> None:
    error = case(parsed(tmp_path), UNPROVEN).find(ERROR)
    assert error is not None
    assert error.get("type") == "INCONCLUSIVE"


def test_skipped_scenarios_and_an_early_end_are_cases(tmp_path: Path) -> None:
    root = parsed(tmp_path, Course(14, {"other": "no FUSE"}, INTERRUPTED, ("Ctrl-C",)))
    skipped = case(root, "other").find(SKIPPED)
    assert skipped is not None
    assert skipped.get("message") == "no FUSE"
    ended = case(root, "the command").find(ERROR)
    assert ended is not None
    assert (ended.get("message"), ended.text) == ("interrupted", "Ctrl-C")


def test_the_numbers_of_the_suite_are_those_of_its_cases(tmp_path: Path) -> None:
    root = parsed(tmp_path, Course(14, {"other": "no FUSE"}))
    suite = root.find("testsuite")
    assert suite is not None
    for element in (root, suite):
        numbers = [int(str(element.get(name))) for name in ("tests", "failures", "errors", "skipped")]
        assert numbers == [14, 1, 1, 1]
    for name in (FAILURE, ERROR, SKIPPED):
        assert len(list(root.iter(name))) == 1
    assert suite.get("timestamp") == STARTED


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    course = Course(14, {"other": HOSTILE}, INTERRUPTED, (HOSTILE,))
    root = parsed(
        tmp_path,
        course,
        HOSTILE.replace("\ud800", ""),
        (Case(HOSTILE, HOSTILE, FAILURE, HOSTILE, HOSTILE, [HOSTILE]),),
    )
    known = {"testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped"}
    assert {element.tag for element in root.iter()} == known
    written = document("x", STARTED, [Case(HOSTILE, "g")]).decode()
    assert "\\x1b[31m\\u202e\\ufffe\\ud800" in written
    assert "\x1b" not in written


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_file_is_written_whole(before: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    if before is not None:
        file.write_bytes(before)
    write(file, b"<x/>")
    assert file.read_bytes() == b"<x/>"
    assert [each.name for each in tmp_path.iterdir()] == ["junit.xml"]
