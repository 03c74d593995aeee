"""Fixtures and options for suites: one cluster and one Spark session for all tests, a run with its evidence for each test."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.cluster_options import add_options
from harness.ledger.packing import add_keep_option
from harness.runtime import signals

if TYPE_CHECKING:
    from harness.campaign import Campaign, Execute, Result
    from harness.contracts import Cluster
    from harness.scenario import Scenario

RESULT = pytest.StashKey["Result"]()
FAILED = pytest.StashKey[bool]()
TESTS = pytest.StashKey[Sequence[pytest.Item]]()
COUNTS = ("attempted", "acked", "in_log", "delivered", "lost", "duplicated", "reordered")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("onceproof", "onceproof: delivery semantics on real clusters")
    group.addoption(
        "--runs", type=Path, default=Path("runs"), help="folder for the run folders (default: runs)"
    )
    group.addoption(
        "--soak-minutes",
        type=float,
        default=10.0,
        help="minutes of faults in suites/test_soak.py (default: 10)",
    )
    group.addoption("--seed", type=int, default=1, help="seed of all random choices of a run (default: 1)")
    group.addoption(
        "--times",
        type=int,
        default=0,
        help="number of repetitions of repeated checks, e.g. kills (default: each check has its own)",
    )
    group.addoption(
        "--busy",
        type=int,
        default=3,
        help="number of busy processes during suites/harness_checks/test_repeated.py (default: 3); use fewer on a loaded machine",
    )
    add_options(group.addoption)
    add_keep_option(group.addoption)
    group.addoption(
        "--record-effects",
        action="store_true",
        help="write the effects that suites/test_faults.py measures to faults/measured.json, for docs/faults.md",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM and SIGHUP end a session as Ctrl-C does: fixtures undo faults and stop their clusters."""
    signals.install()


def pytest_report_header(config: pytest.Config) -> str:
    from harness.provision.versions import versions
    from suites.support.sessions import chosen

    known, choice = versions(), chosen(config)
    return (
        f"onceproof {known['onceproof']}: {choice}, "
        f"confluent-kafka {known['confluent-kafka']}, pyspark {known['pyspark']}, "
        f"seed {config.getoption('--seed')}, runs in {config.getoption('--runs')}"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Decide by the selected tests how the brokers of the shared cluster are started."""
    session.config.stash[TESTS] = session.items


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real cluster for all tests of the session; each run leaves it as it was."""
    from suites.support.sessions import needs_byteman, started_cluster

    byteman = needs_byteman(request.config.stash.get(TESTS, []))
    with started_cluster(request.config, byteman=byteman) as started:
        yield started


@pytest.fixture(scope="session")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    from suites.support.sessions import started_campaign

    with started_campaign(request.config, cluster) as campaign:
        yield campaign


@pytest.fixture
def execute(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    campaign: Campaign,
    record_property: Callable[[str, object], None],
) -> Iterator[Execute]:
    """Run a scenario, reconcile and judge it; its numbers become properties of the JUnit report.

    After the test its runs are packed as --keep says; the runs of a failed test keep all files.
    """

    from harness.injector import why_not_applicable

    results: list[Result] = []

    def run(scenario: Scenario) -> Result:
        if reason := why_not_applicable(scenario, cluster):
            pytest.skip(reason)
        result = campaign.run(scenario.with_seed(request.config.getoption("--seed"))).result()
        request.node.stash[RESULT] = result
        results.append(result)
        for name, value in _properties(result).items():
            record_property(name, value)
        return result

    yield run
    for result in results:
        (campaign.leave if request.node.stash.get(FAILED, False) else campaign.pack)(result)


def _properties(result: Result) -> dict[str, object]:
    return {
        "verdict": str(result.verdict),
        "as_expected": result.as_expected,
        "run_dir": str(result.run.path),
        "unavailable_s_max": result.reconciled["unavailable_s_max"],
        **{name: result.count(name) for name in COUNTS},
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the evidence to a failed test: the verdict, its reasons, the worst findings, the bites."""
    report = yield
    result = item.stash.get(RESULT, None)
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    if report.when == "call" and report.failed and result is not None:
        report.sections.append(("evidence", result.explain()))
        windows = result.reconciled["coverage"]["windows"]
        report.sections.append(("fault windows", "\n".join(f"{w['fault']}: {w['proof']}" for w in windows)))
    return report
