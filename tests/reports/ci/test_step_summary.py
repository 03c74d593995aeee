"""The summary of a step has the answer, the findings with their commands, and the runs; texts cannot break out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.runtime.github import add_to_summary, annotation, cell, code, table
from reports.ci.step_summary import finding_annotations, markdown
from reports.course import Course
from reports.summary import read
from tests.reports.sample import sample_runs

BROKEN = "at_least_once-kill-leader"


def test_findings_come_with_the_command_that_repeats_them(tmp_path: Path) -> None:
    runs = read(sample_runs(tmp_path, broken=[BROKEN]))
    lines = markdown("onceproof nightly", runs, Course(13), ["the unsafe scenario x was found"]).splitlines()
    assert "### onceproof nightly: A promise was violated" in lines
    assert "the unsafe scenario x was found" in lines
    begin = lines.index("#### Findings")
    assert lines[begin + 2].startswith(f"- **{BROKEN}**: promise violated: lost x 17: ")
    assert lines[begin + 3].startswith("  - repeat: `./onceproof ")
    assert sum(line.startswith(("| \u2713", "| \u2717", "| ?")) for line in lines) == 13


def test_runs_as_promised_have_no_findings(tmp_path: Path) -> None:
    runs = read(sample_runs(tmp_path))
    assert "Findings" not in markdown("x", runs, Course(13))
    assert list(finding_annotations(runs)) == []


def test_a_finding_is_one_annotation(tmp_path: Path) -> None:
    (line,) = finding_annotations(read(sample_runs(tmp_path, broken=[BROKEN], text="\n::error::more")))
    assert line.startswith(f"::error title=onceproof%3A {BROKEN}::lost x 17")
    assert "\n" not in line


def test_texts_of_runs_stay_in_their_cells() -> None:
    (row,) = table(["a"], [["x|y\n# z <img> [a](b) `c` \\|"]])[2:]
    assert row == "| x\\|y\\\\n# z &lt;img&gt; \\[a\\](b) \\`c\\` \\\\\\| |"
    assert cell("**bold**") == "\\*\\*bold\\*\\*"
    assert code("a`` b\n") == "``` a`` b\\n ```"
    assert code("./onceproof replay x") == "`./onceproof replay x`"


def test_properties_of_annotations_are_escaped() -> None:
    assert annotation("50%\nx", title="a:b,c") == "::error title=a%3Ab%2Cc::50%25%0Ax"


def test_a_summary_is_cut_to_what_a_step_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert add_to_summary("x\n" * 1_000_000)
    assert file.stat().st_size < 1 << 20
    assert file.read_text().endswith("x\n\n(cut: too long for a summary)\n")


def test_without_a_step_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert not add_to_summary("x")
