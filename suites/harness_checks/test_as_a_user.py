"""onceproof as a user has it: the example of the README for real; `prove` and a test of a user from an installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.campaign import Execute
from suites.support import wheel
from suites.support.readme import example
from suites.support.wheel import Installed

LIMIT_S = 600.0  # for one run: a minute and a half on an idle machine


@pytest.mark.smoke
def test_the_example_of_the_readme_holds(execute: Execute) -> None:
    names: dict[str, Any] = {}
    exec(compile(example(), "README.md", "exec"), names)
    names["test_acked_messages_survive_loss_of_the_leader"](execute, names["Kill"]())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return wheel.install(tmp_path_factory.mktemp("installed"))


@pytest.mark.conformance
@pytest.mark.timeout(LIMIT_S + 300)
def test_an_installed_wheel_proves(installed: Installed, tmp_path: Path) -> None:
    """The environment is new, so the command also makes a class archive for Spark beside its run."""
    words = ["onceproof", "prove", "--quick", "--only", "at_least_once-*"]
    done = installed.run(words, tmp_path, LIMIT_S)
    print(done.stdout, done.stderr, sep="\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "report.html").is_file()
    if "waiting up to" in done.stderr:  # the results were printed before that
        assert done.stderr.index("HELD") < done.stderr.index("waiting up to")


@pytest.mark.conformance
@pytest.mark.timeout(LIMIT_S + 300)
def test_a_test_of_a_user_runs_with_an_installed_wheel(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(example(), encoding="utf-8")
    done = installed.run(["pytest", "-k", "kill", "--onceproof-combined"], tmp_path, LIMIT_S)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 deselected" in done.stdout
    assert list(tmp_path.glob("runs/mine-kill/*/verdict.json"))
