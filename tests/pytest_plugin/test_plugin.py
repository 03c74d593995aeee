"""The plugin in a folder of a user: fixtures, evidence, reports and settings; without a cluster."""

from __future__ import annotations

import fcntl
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cluster_options import kinds_of_clusters
from harness.pytest_plugin import parallel, settings
from tests.pytest_plugin.users import FAKES, TESTS, outcomes, run_pytest, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, conftest_py=FAKES, test_mine_py=TESTS)
    return tmp_path


def test_a_failed_test_carries_its_evidence_and_its_run_stays_whole(folder: Path) -> None:
    done = run_pytest(folder, "-rA")
    assert outcomes(done) == {"passed": 2, "failed": 1, "skipped": 1}
    assert "100% evidence" in done.stdout
    assert "kill: gone" in done.stdout
    assert done.stdout.count("left whole") == 1
    assert done.stdout.count("packed") >= 1
    assert "ran with seed 5" in done.stdout, "the seed of the scenario, where no option says another"


def test_numbers_are_properties_of_the_junit_file(folder: Path) -> None:
    run_pytest(
        folder, "--junitxml=out.xml", "-o", "junit_family=xunit1", "-k", "held", "--onceproof-seed", "9"
    )
    found = {p.get("name"): p.get("value") for p in ET.parse(folder / "out.xml").iter("property")}
    assert found["verdict"] == "HELD"
    assert found["lost"] == "7"


def test_required_tests_fail_instead_of_being_skipped(folder: Path) -> None:
    done = run_pytest(folder, "--onceproof-require")
    assert outcomes(done) == {"passed": 2, "failed": 2}
    assert "--onceproof-require: the test was skipped: x: kill on leader needs a power" in done.stdout


def test_skips_of_other_tests_stay_skips(tmp_path: Path) -> None:
    write(tmp_path, test_mine_py="import pytest\ndef test_a(): pytest.skip('not today')\n")
    assert outcomes(run_pytest(tmp_path, "--onceproof-require")) == {"skipped": 1}


def test_the_marker_selects_tests_of_onceproof(folder: Path) -> None:
    done = run_pytest(folder, "-m", "not onceproof", "--strict-markers")
    assert outcomes(done) == {"passed": 1}


def test_github_gets_annotations_and_a_summary(folder: Path) -> None:
    summary = folder / "summary.md"
    done = run_pytest(folder, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert line.startswith("::error file=test_mine.py,line=9,title=onceproof%3A test_violated::")
    assert line.endswith("x | 100%25 evidence%0Aof the run")
    rows = summary.read_text(encoding="utf-8").splitlines()
    assert "| test_mine.py::test_held | passed | HELD | 7 | 7 | 7 | 7 | 7 |" in rows
    assert not any("test_without_onceproof" in row for row in rows)


def test_without_github_there_is_no_annotation(folder: Path) -> None:
    assert "::error" not in run_pytest(folder).stdout


def test_a_file_that_cannot_be_loaded_is_an_ordinary_error(tmp_path: Path) -> None:
    write(tmp_path, test_mine_py="import no_such_module\n")
    done = run_pytest(tmp_path)
    assert (done.returncode, outcomes(done)) == (2, {"error": 1}), done.stdout + done.stderr
    assert "AttributeError" not in done.stderr


def test_a_session_without_such_tests_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = (
        "pyspark",
        "confluent_kafka",
        "docker",
        "numpy",
        "pyarrow",
        "pandas",
        "faults",
        "suites",
        "reports",
    )
    write(tmp_path, test_mine_py=f"import sys\ndef test_a(): assert not set({heavy}) & set(sys.modules)\n")
    done = run_pytest(tmp_path)
    assert outcomes(done) == {"passed": 1}, done.stdout


# --- settings -------------------------------------------------------------------------------------


def header(done: subprocess.CompletedProcess[str]) -> str:
    return next(line for line in done.stdout.splitlines() if line.startswith("onceproof "))


def test_the_option_wins_over_the_ini_value_and_that_over_the_table(tmp_path: Path) -> None:
    project = '[tool.onceproof]\nkafka = "3.7.0"\nseed = 3\nruns = "there"\n[tool.pytest.ini_options]\n'
    write(tmp_path, pyproject_toml=project)
    assert "Kafka 3.7.0" in header(run_pytest(tmp_path))
    assert f"seed 3, runs in {tmp_path / 'there'}" in header(run_pytest(tmp_path))
    write(tmp_path, pyproject_toml=project + 'onceproof_kafka = "3.8.0"\n')
    assert "Kafka 3.8.0" in header(run_pytest(tmp_path))
    assert "Kafka 3.9.2" in header(run_pytest(tmp_path, "--onceproof-kafka", "3.9.2"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'cluster = "lokal"',
            f"--cluster lokal: unknown kind; choose one of {', '.join(kinds_of_clusters())}",
        ),
        ('mixed = "broker-1"', "--mixed broker-1: write NODE=VERSION"),
        ('image = "kafka"', "--image is for --cluster docker, not local"),
        ('kafak = "3.7.0"', "kafak: unknown setting; known: cluster, kafka"),
        ('seed = "3"', "seed = '3': has to be of type int"),
        ('keep = "most"', "keep = 'most': choose one of evidence, all, least"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path: Path, line: str, said: str) -> None:
    write(tmp_path, pyproject_toml=f"[tool.onceproof]\n{line}\n")
    done = run_pytest(tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_suites_of_this_project_keep_short_names_for_the_same_values(pytestconfig: pytest.Config) -> None:
    for name in ("cluster", "kafka", "runs", "seed", "keep"):
        assert pytestconfig.getoption(settings.flag(name, "")) == settings.value(pytestconfig, name)


# --- xdist ----------------------------------------------------------------------------------------


def config(worker: bool = False, **option: object) -> Any:
    return SimpleNamespace(option=SimpleNamespace(**option), **({"workerinput": {}} if worker else {}))


@pytest.mark.parametrize(
    ("config", "scope", "said"),
    [
        (config(), "session", ""),
        (config(dist="no"), "session", ""),
        (config(dist="load"), "session", "one at a time"),
        (config(worker=True, dist="no"), "function", ""),
    ],
)
def test_under_xdist_tests_take_turns(config: Any, scope: str, said: str) -> None:
    assert parallel.scope("onceproof_cluster", config) == scope
    described = parallel.described(config)
    assert said in described
    assert bool(said) == bool(described)


def test_only_one_worker_has_its_turn(tmp_path: Path) -> None:
    worker = config(worker=True)
    with (
        parallel.turn(worker, tmp_path),
        (tmp_path / ".pytest.lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with parallel.turn(worker, tmp_path):
        pass


def test_a_file_that_cannot_be_collected_is_reported_as_usual(tmp_path: Path) -> None:
    write(tmp_path, test_mine_py="import no_such_module\n")
    done = run_pytest(tmp_path)
    assert "No module named 'no_such_module'" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.INTERRUPTED
