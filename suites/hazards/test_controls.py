"""Every hazard of this folder: the harness has to find it, else it is blind; and the safe way has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.cluster_options import by_byteman
from harness.contracts import Verdict
from harness.pytest_plugin import evidence
from harness.scenario import Scenario
from suites.scenarios.hazards import Hazard, Needs
from suites.support.hazard_clusters import FOUND, USUAL, HazardClusters


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest) -> Iterator[HazardClusters]:
    started = HazardClusters(request.config)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def execute(request: pytest.FixtureRequest, scenario: Scenario, clusters: HazardClusters) -> Iterator[Any]:
    """Run a scenario on the session's cluster, or on another one if the scenario needs that."""
    if (needs := _needs(scenario)) == USUAL:
        begun = request.getfixturevalue("cluster"), request.getfixturevalue("campaign")
    else:
        begun = clusters.needed(needs)
    yield from evidence.executing(request, *begun)


def _needs(scenario: Scenario) -> Needs:
    return FOUND[scenario.hazard].needs_of(scenario)


def _marked(name: str, hazard: Hazard) -> Any:
    # The quick ones belong to CI by `catalogue --quick`.
    in_smoke = hazard.place_in_prove and not hazard.quick
    marks = [pytest.mark.smoke if in_smoke else pytest.mark.conformance]
    if hazard.needs == USUAL and by_byteman(hazard.scenarios):
        marks.append(pytest.mark.byteman)
    return pytest.param(hazard.unsafe, marks=marks, id=name)


@pytest.mark.parametrize("scenario", [_marked(*each) for each in FOUND.items() if each[1].unsafe])
def test_the_hazard_is_found(execute: Any, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.as_expected, result.explain()


# In an order in which those with equal needs share a cluster.
_SAFE = sorted((h.safe for h in FOUND.values() if h.safe), key=lambda safe: repr(_needs(safe)))


@pytest.mark.conformance
@pytest.mark.parametrize("scenario", [pytest.param(safe, id=safe.hazard) for safe in _SAFE])
def test_the_safe_way_holds(execute: Any, scenario: Scenario) -> None:
    result = execute(scenario)
    assert result.as_expected, result.explain()
    assert result.verdict is Verdict.HELD, result.explain()
