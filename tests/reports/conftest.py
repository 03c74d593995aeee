"""Registers the marker of the tests that need a browser, and offers sample run folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir
from reports.build import build
from tests.reports.sample import VERSIONS, sample_runs

HOSTILE = '</script><img src=x onerror="document.documentElement.dataset.owned=1"><!-- \' & </style>'


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: opens a report in headless Chromium")


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[RunDir]:
    """13 sample runs, all as promised."""
    return sample_runs(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of runs whose texts try to leave their place; one is broken, one crashed, one quiet."""
    root = tmp_path_factory.mktemp("hostile")
    runs = sample_runs(root / "runs", text=HOSTILE, broken=["exactly_once-kill-leader"],
                       crashed=["at_least_once-sever-leader"],
                       quiet=["exactly_once-slow_disk-leader"])  # fmt: skip
    return build(runs, root / "report.html", title=f"sample {HOSTILE}", command=f"./onceproof {HOSTILE}",
                 seed=7, versions={**VERSIONS, HOSTILE: HOSTILE}, started=1.76e9, seconds=251.3)  # fmt: skip
