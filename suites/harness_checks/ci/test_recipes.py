"""Whole jobs of docs/ci as their CI system runs them, with a short night: the files that they keep exist and say the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from suites.support import ci_recipes
from suites.support.ci_recipes import Job

ROOT = Path(__file__).resolve().parents[3]
JOBS = {job.name: job for job in ci_recipes.jobs()}
LIMIT_S = 1500
AS_PROMISED, INCONCLUSIVE = 0, 3


def carried_out(job: Job, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the commands of a job in a folder that looks like a clone; the cache folder is that of this machine."""
    (folder / "onceproof").symlink_to(ROOT / "onceproof")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB")}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", job.script],
        cwd=folder,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def cases(folder: Path) -> dict[str, list[str]]:
    """Return the test cases of the JUnit file with what they have beside their properties."""
    suite = ElementTree.parse(folder / "runs" / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    return {
        str(case.get("name")): [child.tag for child in case if child.tag != "properties"] for case in suite
    }


@pytest.mark.timeout(LIMIT_S + 60)
def test_a_pull_request_gets_a_summary_and_a_junit_file(tmp_path: Path) -> None:
    job, summary = JOBS["github smoke"], tmp_path / "summary.md"
    done = carried_out(job, tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == AS_PROMISED, done.stderr
    assert [outcome for outcome in cases(tmp_path).values() if outcome] == []
    assert len(cases(tmp_path)) == 3
    assert "::error" not in done.stderr
    assert summary.read_text(encoding="utf-8").count("| HELD |") == 3
    assert all((tmp_path / path).exists() for path in job.artifacts)


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("name", ["github nightly", "gitlab onceproof-nightly"])
def test_a_night_leaves_its_artifacts(name: str, tmp_path: Path) -> None:
    job = JOBS[name]
    done = carried_out(job, tmp_path, MINUTES="3")
    assert done.returncode in (AS_PROMISED, INCONCLUSIVE), done.stdout + done.stderr
    assert all((tmp_path / path).exists() for path in job.artifacts)
    assert (tmp_path / "runs" / "report.html").exists()
    (result,) = (tmp_path / "runs" / ".nights").glob("*/result.json")
    (journal,) = (tmp_path / "runs" / ".nights").glob("*/journal.jsonl")
    data = json.loads(result.read_text(encoding="utf-8"))
    assert data["canary"]["found"]
    assert Path(data["journal"]).name == journal.name
    executed = {run["scenario"] for run in data["runs"]}
    assert executed <= set(cases(tmp_path))
    errors = {scenario for scenario, outcome in cases(tmp_path).items() if outcome == ["error"]}
    assert errors == {run["scenario"] for run in data["runs"] if run["verdict"] == "INCONCLUSIVE"}
    assert (done.returncode == INCONCLUSIVE) == bool(errors)
