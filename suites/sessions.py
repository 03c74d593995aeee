"""A cluster and a campaign for tests, from pytest's options. conftest.py has them for all tests; a suite may want its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from harness.campaign import Campaign
    from harness.choice import Choice
    from harness.clusters._options import Options
    from harness.contracts import Cluster
    from harness.scenario import Scenario

PROVE = "./onceproof prove --only {name} --seed {seed}"
PYTEST = "pytest suites -k {name} --seed {seed}"


def chosen(
    config: pytest.Config, options: Options | None = None, settings: Mapping[str, str] = {}, **fixed: Any
) -> Choice:
    """The cluster that pytest's options name, laid out as a suite needs it; `fixed`: what the suite itself chooses."""
    from harness.choice import Choice
    from harness.clusters._options import PLAIN

    choice = replace(Choice.of(config.getoption, options=options or PLAIN, settings=settings), **fixed)
    # The brokers of a cluster that runs already are as they are; what they cannot do is skipped with the reason.
    return replace(choice, options=PLAIN, settings={}) if choice.cluster == "existing" else choice


@contextmanager
def started_cluster(
    config: pytest.Config, options: Options | None = None, settings: Mapping[str, str] = {}, **fixed: Any
) -> Iterator[Cluster]:
    """A real cluster; what crashed sessions left is swept first."""
    from harness import owned
    from harness.choice import running
    from harness.clusters._undo import undo_left

    runs: Path = config.getoption("--runs")
    undo_left(lambda text: print(text, file=sys.stderr))
    owned.sweep(runs)
    folder = owned.new_cluster_folder(runs)
    with running(chosen(config, options, settings, **fixed).build(folder)) as started:
        yield started
    owned.remove(folder)


@contextmanager
def started_campaign(config: pytest.Config, cluster: Cluster, command: str = "") -> Iterator[Campaign]:
    """`command` repeats one of its runs; {name} and {seed} stand for the run's. Empty: `prove`, for what that has, or pytest."""
    from harness.campaign import Campaign
    from harness.versions import versions
    from suites import matrix

    proven = {scenario.name for scenario in matrix.FULL}

    def repeats(scenario: Scenario) -> str:
        words = command or (PROVE if scenario.name in proven else PYTEST)
        return words.format(name=scenario.name, seed=config.getoption("--seed"))

    with Campaign(
        cluster,
        config.getoption("--runs"),
        command_for=repeats,
        versions=versions(),
        keep=config.getoption("--keep"),
    ) as campaign:
        yield campaign
