"""The example of the README is a test as it is printed."""

from __future__ import annotations

from pathlib import Path

from suites.support.readme import example
from tests.pytest_plugin.users import run_pytest, write


def test_the_example_collects_as_printed(tmp_path: Path) -> None:
    write(tmp_path, test_example_py=example())
    done = run_pytest(tmp_path, "--collect-only", "-q")
    assert done.stdout.splitlines()[:2] == [
        "test_example.py::test_acked_messages_survive_loss_of_the_leader[kill]",
        "test_example.py::test_acked_messages_survive_loss_of_the_leader[sever]",
    ]
