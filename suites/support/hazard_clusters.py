"""Clusters for hazards: one for all with equal needs, in sequence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from harness.campaign import Campaign
from harness.cluster_options import by_byteman
from harness.contracts import Cluster
from harness.errors import SetupError, UsageError
from harness.scenario import Scenario
from suites.scenarios import hazards
from suites.scenarios.hazards import Needs
from suites.support.sessions import started_campaign, started_cluster

# Hazards with equal needs one after the other, so that they share a cluster.
FOUND = dict(sorted(hazards.found().items(), key=lambda each: repr(each[1].needs)))
USUAL = Needs()


class HazardClusters:
    """Starts the cluster that a hazard needs, and stops the one before it if the needs differ."""

    def __init__(self, config: pytest.Config, command: str = "") -> None:
        self._config, self._command, self._stack = config, command, ExitStack()
        self._needs: Needs | None = None
        self._begun: tuple[Cluster, Campaign] | None = None

    def needed(self, needs: Needs) -> tuple[Cluster, Campaign]:
        """Return a cluster and a campaign for a run; skip the test if this machine cannot have the cluster."""
        if self._begun is None or self._needs != needs or needs.alone:
            self.close()
            try:
                cluster = self._stack.enter_context(
                    started_cluster(
                        self._config,
                        needs.options,
                        needs.settings,
                        byteman=by_byteman(_scenarios(needs), fuse=needs.options.fuse),
                        **({"kafka": needs.kafka} if needs.kafka else {}),
                    )
                )
            except (SetupError, UsageError) as error:
                pytest.skip(str(error))
            campaign = self._stack.enter_context(started_campaign(self._config, cluster, self._command))
            self._needs, self._begun = needs, (cluster, campaign)
        return self._begun

    def close(self) -> None:
        self._begun = None
        self._stack.close()


def _scenarios(needs: Needs) -> Sequence[Scenario]:
    return [each for hazard in FOUND.values() for each in hazard.scenarios if hazard.needs_of(each) == needs]
