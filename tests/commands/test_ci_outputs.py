"""A night on mock brokers writes a JUnit file, and in GitHub Actions a summary and annotations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli import main
from tests.commands.mock_brokers import CANARY, LIAR, without_replays
from tests.commands.test_nightly import HONEST_ONES, with_plan


@pytest.mark.spark
def test_a_night_with_a_finding_writes_what_ci_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(monkeypatch, [HONEST_ONES[0], CANARY, LIAR])
    without_replays(monkeypatch)
    summary, junit = tmp_path / "summary.md", tmp_path / "ci" / "junit.xml"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    code = main(["nightly", "--seed", "7", "--json", "--runs", str(tmp_path / "runs"), "--junit", str(junit)])
    said = capsys.readouterr()
    data = json.loads(said.out)
    assert code == 1, data
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    outcomes = {each.get("name"): [child.tag for child in each][1:] for each in suite}
    assert outcomes == {"honest-1": [], "canary": [], "liar": ["failure"]}
    (line,) = [line for line in said.err.splitlines() if line.startswith("::error ")]
    assert line.startswith("::error title=onceproof%3A liar::lost x ")
    assert "the unsafe scenario canary was found" in summary.read_text()
    assert f"`./onceproof replay {tmp_path / 'runs' / 'liar'}`" in summary.read_text()


@pytest.mark.spark
def test_an_unsafe_scenario_that_was_not_run_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    impossible = replace(CANARY, client="no_such_client")
    with_plan(monkeypatch, [HONEST_ONES[0], impossible])
    junit = tmp_path / "junit.xml"
    code = main(["nightly", "--seed", "7", "--runs", str(tmp_path / "runs"), "--junit", str(junit)])
    assert code == 1
    failures = ElementTree.parse(junit).getroot().findall("testsuite/testcase[failure]")
    assert [each.get("name") for each in failures] == ["canary"]
    assert "was NOT found" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["nightly", "prove"])
def test_a_junit_file_that_cannot_be_written_is_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--junit", str(tmp_path), "--runs", str(tmp_path / "runs")]) == 2
    error = capsys.readouterr().err
    assert error.splitlines() == [
        f"onceproof: --junit {tmp_path}: cannot be written: it is a folder; choose another file"
    ]
