"""A campaign whose runs say how this project repeats them; clusters for suites come from the pytest plugin."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from harness.pytest_plugin import sessions, settings
from harness.pytest_plugin.sessions import started_cluster

if TYPE_CHECKING:
    import pytest

    from harness.campaign import Campaign
    from harness.contracts import Cluster
    from harness.scenario import Scenario

__all__ = ["started_campaign", "started_cluster"]

PROVE = "./onceproof prove --only {name} --seed {seed}"
PYTEST = "pytest suites -k {name} --seed {seed}"


def started_campaign(
    config: pytest.Config, cluster: Cluster, command: str = ""
) -> AbstractContextManager[Campaign]:
    """A campaign on the cluster. `command` repeats one of its runs, with {name} and {seed} replaced.

    Without a command it is `prove` for the scenarios of `prove`, else pytest.
    """
    from suites.scenarios import matrix

    proven = {scenario.name for scenario in matrix.FULL}

    def repeats(scenario: Scenario) -> str:
        words = command or (PROVE if scenario.name in proven else PYTEST)
        return words.format(name=scenario.name, seed=settings.value(config, "seed"))

    return sessions.started_campaign(config, cluster, repeats)
