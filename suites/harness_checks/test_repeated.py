"""Controls and safe modes, repeated beside busy processes: no control and no verdict may depend on timing.

`pytest suites/harness_checks/test_repeated.py -k controls --times 50` repeats every control 50 times, `-k safe --times 9` makes 108
runs of the safe modes. The numbers are printed and written to `repeated.json` below --runs after each scenario.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from faults.pause import Pause
from harness.campaign import Campaign, Result
from harness.clusters.base.options import Options
from harness.contracts import Cluster, Mode, Verdict
from harness.injector import why_not_applicable
from harness.ledger.rundir import write_json
from harness.processes import child_process
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import fault_cases, matrix
from suites.support.hazard_clusters import FOUND, USUAL, HazardClusters
from suites.support.sessions import started_campaign, started_cluster

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(24 * 3600)]

TIMES = 3
COUNT_FOR_EVER = "n = 0\nwhile True:\n    n += 1"
COMMAND = "pytest suites/harness_checks/test_repeated.py -k {name}"
PAUSE_LEADER = once(Pause(), on=leader_of(0), after_s=0.5, hold_s=1.5)

CONTROLS: tuple[Scenario, ...] = (
    matrix.crossed(Mode.AT_MOST_ONCE, "kill-leader"),
    *(hazard.unsafe for hazard in FOUND.values() if hazard.unsafe),
)
SAFE: tuple[Scenario, ...] = tuple(
    Scenario(name=f"{mode}-{fault}", mode=mode, schedule=schedule)
    for fault, schedule in {**matrix.FAULTS, "pause-leader": PAUSE_LEADER}.items()
    for mode in fault_cases.ACKED
)

Repeat = Callable[[Scenario], Sequence[Result]]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with started_cluster(request.config, Options(byteman=True)) as started:
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    with started_campaign(request.config, cluster, COMMAND) as begun:
        yield begun


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest) -> Iterator[HazardClusters]:
    """Clusters for hazards that need another one than the usual."""
    started = HazardClusters(request.config, COMMAND)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def busy(request: pytest.FixtureRequest) -> Iterator[Sequence[int]]:
    """Processes that count forever (--busy); they die with this process."""
    with ExitStack() as undo:
        pids = []
        for _ in range(request.config.getoption("--busy")):
            process = child_process.spawn([sys.executable, "-c", COUNT_FOR_EVER], log=None)
            undo.callback(child_process.end, process)
            pids.append(process.pid)
        yield pids


@pytest.fixture(scope="module")
def account(request: pytest.FixtureRequest) -> Callable[[str, Sequence[Result]], Mapping[str, Any]]:
    """Add the numbers of a scenario to repeated.json and print them."""
    path = Path(request.config.getoption("--runs")) / "repeated.json"
    busy: int = request.config.getoption("--busy")
    scenarios: dict[str, Any] = {}

    def add(name: str, results: Sequence[Result]) -> Mapping[str, Any]:
        scenarios[name] = numbers(results)
        write_json(
            path, {"busy_processes": busy, "cores": len(os.sched_getaffinity(0)), "scenarios": scenarios}
        )
        print(f"\n{name}: {json.dumps(scenarios[name])}")
        return dict(scenarios[name])

    return add


def numbers(results: Sequence[Result]) -> dict[str, Any]:
    """Return the results of the runs of one scenario, with reasons for the unexpected ones."""
    reasons = Counter(text for r in results for text in _reasons(r))
    return {
        "runs": len(results),
        "as_expected": sum(r.as_expected for r in results),
        "verdicts": dict(Counter(str(r.verdict) for r in results)),
        "found": {
            name: [min(counts), max(counts)]
            for name in (results[0].scenario.requires if results else ())
            if (counts := [r.judgement.found[name] for r in results])
        },
        "also": dict(sum((_also(r) for r in results), Counter())),
        "load_1_min": round(os.getloadavg()[0], 1),
        "reasons": dict(reasons.most_common()),
        "run_dirs": [str(r.run.path) for r in results if not r.as_expected],
    }


def _reasons(result: Result) -> list[str]:
    if result.as_expected:
        return []
    lacking = [shortfall.text for shortfall in result.judgement.shortfalls]
    violated = [f"{v.anomaly} {v.count}" for v in result.judgement.violations] if not lacking else []
    return [*lacking, *violated, *(result.judgement.inconclusive if not lacking else ())]


def _also(result: Result) -> Counter[str]:
    """Return the forbidden anomalies that were found beside the required ones."""
    return Counter(result.violations - set(result.scenario.requires))


@pytest.fixture
def repeat(request: pytest.FixtureRequest, clusters: HazardClusters) -> Repeat:
    """Run a scenario --times times, each time with another seed, on the cluster that its hazard needs."""

    def started(scenario: Scenario) -> tuple[Cluster, Campaign]:
        hazard = FOUND.get(scenario.hazard)
        if hazard is not None and (needs := hazard.needs_of(scenario)) != USUAL:
            return clusters.needed(needs)
        return request.getfixturevalue("cluster"), request.getfixturevalue("campaign")

    def run(scenario: Scenario) -> Sequence[Result]:
        times = request.config.getoption("--times") or TIMES
        seed = request.config.getoption("--seed")
        cluster, _ = started(scenario)
        if reason := why_not_applicable(scenario, cluster):
            pytest.skip(reason)
        busy: Sequence[int] = request.getfixturevalue("busy")  # not sooner: the cluster starts without them
        began = time.monotonic()
        waiting = [
            started(scenario)[1].run(scenario.with_seed(seed * 1000 + number)) for number in range(times)
        ]
        results = [each.result() for each in waiting]
        assert all(Path(f"/proc/{pid}").exists() for pid in busy), "a busy process has ended"
        print(f"\n{times} runs in {time.monotonic() - began:.0f} s")
        return results

    return run


@pytest.mark.control
@pytest.mark.parametrize("scenario", CONTROLS, ids=lambda s: s.name)
def test_controls_raise_their_anomaly_every_time(
    repeat: Repeat, account: Callable[[str, Sequence[Result]], Mapping[str, Any]], scenario: Scenario
) -> None:
    results = repeat(scenario)
    counts = account(scenario.name, results)
    assert counts["as_expected"] == counts["runs"], "\n".join(
        r.explain() for r in results if not r.as_expected
    )


@pytest.mark.parametrize("scenario", SAFE, ids=lambda s: s.name)
def test_safe_modes_are_never_violated(
    repeat: Repeat, account: Callable[[str, Sequence[Result]], Mapping[str, Any]], scenario: Scenario
) -> None:
    """INCONCLUSIVE is accepted on a machine this busy; the numbers contain how often and why."""
    results = repeat(scenario)
    account(scenario.name, results)
    violated = [r for r in results if r.verdict is Verdict.VIOLATED]
    assert not violated, "\n".join(r.explain() for r in violated)
