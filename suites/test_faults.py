"""Every fault while producers and consumers run: the promises hold. Losses that no mode survives are hazards (`suites/hazards`).

The cluster has every power that this machine allows: FUSE disks under the brokers, adjustable clocks, two log folders per
broker. Faults that need a power which the nodes lack are skipped with the reason (harness.injector.why_not_applicable).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.campaign import Campaign, Execute, Result
from harness.contracts import Cluster, Mode, Verdict
from harness.fault_catalogue import MEASURED
from harness.scenario import Scenario
from suites.nights.layout import SETTINGS, every_power
from suites.scenarios.fault_cases import scenarios
from suites.support.sessions import started_campaign, started_cluster

SMOKE = ("pause", "flaky_link", "full_disk", "transfer_leadership", "kill_worker-consumer")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    options = every_power(request.config.getoption("--cluster"))
    with started_cluster(request.config, options, SETTINGS) as started:
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    command = "pytest suites/test_faults.py -k {name} --seed {seed}"
    with started_campaign(request.config, cluster, command) as campaign:
        yield campaign


@pytest.fixture(autouse=True)
def _nothing_left(cluster: Cluster) -> Iterator[None]:
    yield
    assert list(cluster.residue()) == [], "the next run would start on a cluster that is not as it was"


def _marked(scenario: Scenario) -> Any:
    """Mark a scenario: a few run with every change."""
    mode, name = scenario.name.split("-", 1)
    marks = [pytest.mark.smoke] if name in SMOKE and mode == Mode.AT_LEAST_ONCE else []
    return pytest.param(scenario, marks=marks, id=scenario.name)


@pytest.mark.parametrize("scenario", [_marked(scenario) for scenario in scenarios()])
def test_what_was_promised_holds(execute: Execute, scenario: Scenario, pytestconfig: pytest.Config) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("acked") > 0
    if pytestconfig.getoption("--record-effects"):
        record(result)


def record(result: Result) -> None:
    """Add the effect of a fault with its defaults to faults/measured.json, for docs/faults.md."""
    windows: list[dict[str, Any]] = result.reconciled["coverage"]["windows"]
    if len(windows) != 1 or result.scenario.name != f"{result.scenario.mode}-{windows[0]['fault']}":
        return
    known = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    known.setdefault(windows[0]["fault"], {})[str(result.scenario.mode)] = {
        "unavailable_s_max": result.reconciled["unavailable_s_max"],
        "recovered_s": windows[0]["recovered_s"],
    }
    MEASURED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
