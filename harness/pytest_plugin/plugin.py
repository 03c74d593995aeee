"""Hooks and fixtures: a cluster and a Spark session for all tests, a run and its evidence for each test.

Loaded in every session of an environment that has onceproof, so everything heavy is imported where a test uses it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from harness import __version__
from harness.errors import OnceproofError
from harness.pytest_plugin import claims, evidence, github, parallel, sessions, settings

if TYPE_CHECKING:
    from harness.campaign import Campaign, Execute
    from harness.contracts import Cluster

TESTS = pytest.StashKey[Sequence[pytest.Item]]()
_MARKER = (
    "onceproof(byteman=False): runs scenarios on a Kafka cluster; set on every test that uses the cluster. "
    "byteman=True: the brokers are started with Byteman, for disk faults that the name of the test does not show"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    settings.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    settings.resolve(config)
    try:
        sessions.chosen(config).check()
    except OnceproofError as error:
        raise pytest.UsageError(str(error)) from error
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", claims.MARKER)


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = settings.value(config, "seed")
    line = (
        f"onceproof {__version__}: {sessions.chosen(config)}, "
        f"confluent-kafka {metadata.version('confluent-kafka')}, pyspark {metadata.version('pyspark')}, "
        f"{'' if seed is None else f'seed {seed}, '}runs in {settings.value(config, 'runs')}"
    )
    return [line, *filter(None, [parallel.described(config)])]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the cluster."""
    for item in items:
        uses_cluster = "onceproof_cluster" in getattr(item, "fixturenames", ())
        if uses_cluster and item.get_closest_marker("onceproof") is None:
            item.add_marker("onceproof")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember the tests that are left: they decide how the brokers of the shared cluster are started."""
    claims.check(session.items, session.config)
    session.config.stash[TESTS] = session.items


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    evidence.refuse_skip(item, report)
    claims.answer(item, call, report)
    evidence.attach(item, report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    outcomes = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
    reports = [report for outcome in outcomes for report in terminalreporter.stats.get(outcome, ())]
    if lines := list(claims.summary(reports, terminalreporter.config)):
        terminalreporter.section("claims")
        terminalreporter.write("".join(f"{line}\n" for line in lines))
    for line in github.write(reports):
        terminalreporter.write_line(line)


@pytest.fixture(scope=parallel.scope)
def onceproof_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real cluster for all tests of the session; each run leaves it as it was."""
    config = request.config
    tests = [request.node] if parallel.taking_turns(config) else config.stash.get(TESTS, [])
    byteman = sessions.needs_byteman(tests)
    with (
        parallel.turn(config, sessions.runs_of(config)),
        sessions.started_cluster(config, byteman=byteman) as started,
    ):
        yield started


@pytest.fixture(scope=parallel.scope)
def onceproof_campaign(request: pytest.FixtureRequest, onceproof_cluster: Cluster) -> Iterator[Campaign]:
    """The runs of the session, reconciled by one Spark session."""
    command_for = partial(sessions.repeat_command, request.config)
    with sessions.started_campaign(request.config, onceproof_cluster, command_for) as campaign:
        yield campaign


@pytest.fixture
def execute(
    request: pytest.FixtureRequest,
    onceproof_cluster: Cluster,
    onceproof_campaign: Campaign,
) -> Iterator[Execute]:
    """Run a scenario, reconcile and judge it: `result = execute(Scenario(…))`."""
    yield from evidence.executing(request, onceproof_cluster, onceproof_campaign)
