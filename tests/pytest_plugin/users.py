"""A folder of a user with tests, and pytest run there in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Instead of a cluster: it lacks the power to kill, and each run has the verdict that its scenario's name begins with.
FAKES = """
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from harness.contracts import ClusterDescription


class Campaign:
    def run(self, scenario):
        print("ran with seed", scenario.seed)
        verdict = scenario.name.partition("-")[0]
        future = Future()
        future.set_result(SimpleNamespace(
            verdict=verdict, as_expected=verdict == "HELD", run=SimpleNamespace(path="runs/x"), count=lambda name: 7,
            explain=lambda: "x | 100% evidence\\nof the run",
            reconciled={"unavailable_s_max": 1.5, "coverage": {"windows": [{"fault": "kill", "proof": "gone"}]}},
        ))
        return future

    def pack(self, result):
        print("packed")

    def leave(self, result):
        print("left whole")


@pytest.fixture(scope="session")
def onceproof_cluster():
    return SimpleNamespace(describe=lambda: ClusterDescription("existing"), nodes=lambda: [])


@pytest.fixture(scope="session")
def onceproof_campaign(onceproof_cluster):
    return Campaign()
"""

TESTS = """
from onceproof import Kill, Mode, Scenario, leader_of, once


def test_held(execute):
    assert execute(Scenario(name="HELD-x", mode=Mode.AT_LEAST_ONCE, seed=5)).verdict == "HELD"


def test_violated(execute):
    assert execute(Scenario(name="VIOLATED-x", mode=Mode.AT_LEAST_ONCE)).verdict == "HELD"


def test_impossible(execute):
    execute(Scenario(name="x", mode=Mode.AT_LEAST_ONCE, schedule=once(Kill(), on=leader_of(0))))


def test_without_onceproof():
    pass
"""


def write(folder: Path, **files: str) -> None:
    """Write files by names whose dots are underscores: `test_a_py`."""
    for name, text in files.items():
        stem, _, end = name.rpartition("_")
        (folder / f"{stem}.{end}").write_text(text, encoding="utf-8")


def run_pytest(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin and no other one."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "GITHUB"))}
    return subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "onceproof_pytest", *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
        text=True,
        capture_output=True,
        check=False,
        timeout=120.0,
    )


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Return how many tests passed, failed and so on, from the last line of the output."""
    last = done.stdout.strip().splitlines()[-1]
    return {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|skipped|errors?)", last)}
