"""A cluster and a campaign for tests, from pytest's options. conftest.py has them for all tests; a suite may have its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from harness.campaign import Campaign
    from harness.cluster_options import Choice
    from harness.clusters.base.options import Options
    from harness.contracts import Cluster
    from harness.scenario import Scenario

PROVE = "./onceproof prove --only {name} --seed {seed}"
PYTEST = "pytest suites -k {name} --seed {seed}"


def chosen(
    config: pytest.Config, options: Options | None = None, settings: Mapping[str, str] = {}, **fixed: Any
) -> Choice:
    """Return the cluster of pytest's options, with the layout that a suite needs; `fixed` are choices of the suite itself."""
    from harness.cluster_options import Choice
    from harness.clusters.base.options import PLAIN

    choice = replace(Choice.of(config.getoption, options=options or PLAIN, settings=settings), **fixed)
    # The brokers of an existing cluster cannot be changed; tests that they do not support are skipped with the reason.
    return replace(choice, options=PLAIN, settings={}) if choice.cluster == "existing" else choice


def needs_byteman(items: Sequence[pytest.Item]) -> bool:
    """Return True if one of these tests breaks disks by Byteman: by its marker, its scenario, or a fault in its name."""
    from harness.cluster_options import by_byteman, faults_by_byteman
    from harness.scenario import Scenario

    def one(item: pytest.Item) -> bool:
        if item.get_closest_marker("byteman") or any(name in item.name for name in faults_by_byteman()):
            return True
        call = getattr(item, "callspec", None)
        values = call.params.values() if call is not None else ()
        return any(isinstance(each, Scenario) and by_byteman([each]) for each in values)

    return any(one(item) for item in items)


@contextmanager
def started_cluster(
    config: pytest.Config,
    options: Options | None = None,
    settings: Mapping[str, str] = {},
    *,
    byteman: bool = False,
    **fixed: Any,
) -> Iterator[Cluster]:
    """Start a real cluster, with Byteman in its brokers if a test needs it, after sweeping leftovers of crashed sessions."""
    from harness.cluster_options import running, with_byteman
    from harness.clusters.external.undo import undo_left
    from harness.processes import ownership

    runs: Path = config.getoption("--runs")
    undo_left(lambda text: print(text, file=sys.stderr))
    ownership.sweep(runs)
    folder = ownership.new_cluster_folder(runs)
    choice = chosen(config, options, settings, **fixed)
    with running((with_byteman(choice) if byteman else choice).build(folder)) as started:
        yield started
    ownership.remove(folder)


@contextmanager
def started_campaign(config: pytest.Config, cluster: Cluster, command: str = "") -> Iterator[Campaign]:
    """Start a campaign. `command` repeats a run, with placeholders {name} and {seed}; empty: `prove` or, if it lacks it, pytest."""
    from harness.campaign import Campaign
    from harness.provision.versions import versions
    from suites.scenarios import matrix

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
