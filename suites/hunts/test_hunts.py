"""Every hunt of this folder with its budget: opt-in, hours. A finding fails the test and leaves its evidence folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.hunts import listing
from harness.hunts.account import text_of
from harness.hunts.hunt import HuntResult
from harness.hunts.hunting import Budget, HuntingGround, hunt_all
from harness.provision.versions import versions
from harness.pytest_plugin import sessions, settings

pytestmark = [pytest.mark.hunt, pytest.mark.timeout(4 * 3600)]
FOUND = listing.found()


@pytest.mark.parametrize("name", FOUND)
def test_nothing_is_found(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    def say(text: str) -> None:
        print(text, file=sys.stderr)

    config: Any = request.config
    runs, choice = sessions.runs_of(config), sessions.chosen(config)
    seed, keep = settings.value(config, "seed"), settings.value(config, "keep")
    ground = HuntingGround(
        choice=choice, runs=runs, evidence=runs / ".evidence", seed=seed, keep=keep, versions=versions(choice.kafka), say=say
    )  # fmt: skip
    results: list[HuntResult] = []
    hunt_all({name: FOUND[name]}, ground, Budget(), results)
    (result,) = results
    if result.not_run:
        pytest.skip(result.not_run)
    assert not result.findings, text_of(result)
    assert result.rate.runs, f"no run proves anything: {text_of(result)}"
