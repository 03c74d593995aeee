"""onceproof as a user has it: the example of the README for real, and `prove` from an installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.campaign import Execute
from suites.support import wheel
from suites.support.readme import example


@pytest.mark.smoke
def test_the_example_of_the_readme_holds(execute: Execute) -> None:
    names: dict[str, Any] = {}
    exec(compile(example(), "README.md", "exec"), names)
    names["test_acked_messages_survive_loss_of_the_leader"](execute, names["Kill"]())


@pytest.mark.conformance
def test_an_installed_wheel_proves(tmp_path: Path) -> None:
    installed = wheel.install(tmp_path)
    folder = tmp_path / "user"
    folder.mkdir()
    done = installed.run(["onceproof", "prove", "--quick", "--only", "at_least_once-*"], folder)
    assert done.returncode == 0, done.stderr
    assert list(folder.glob("runs/*/report.html")) or list(folder.glob("runs/report.html"))
