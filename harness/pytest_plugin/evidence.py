"""One test and its runs: execute scenarios, record their numbers, and attach the evidence to a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin import settings

if TYPE_CHECKING:
    from harness.campaign import Campaign, Execute, Result
    from harness.contracts import Cluster
    from harness.scenario import Scenario

RESULT = pytest.StashKey["Result"]()
FAILED = pytest.StashKey[bool]()
COUNTS = ("attempted", "acked", "in_log", "delivered", "lost", "duplicated", "reordered")
EVIDENCE = "evidence"


def executing(request: pytest.FixtureRequest, cluster: Cluster, campaign: Campaign) -> Iterator[Execute]:
    """Yield the function that runs a scenario, reconciles and judges it; its numbers become JUnit properties.

    After the test its runs are packed as `keep` says; the runs of a test that failed stay whole.
    """
    from harness.injector import why_not_applicable

    results: list[Result] = []
    seed = settings.value(request.config, "seed")

    def run(scenario: Scenario) -> Result:
        if reason := why_not_applicable(scenario, cluster):
            pytest.skip(reason)
        result = campaign.run(scenario if seed is None else scenario.with_seed(seed)).result()
        request.node.stash[RESULT] = result
        results.append(result)
        # Not by record_property, which warns of each with the default junit_family.
        request.node.user_properties.extend(_properties(result).items())
        return result

    yield run
    for result in results:
        (campaign.leave if request.node.stash.get(FAILED, False) else campaign.pack)(result)


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Attach the verdict, its reasons, the worst findings and the fault windows to a failed test."""
    if report.when != "call" or not report.failed:
        return
    item.stash[FAILED] = True
    result = item.stash.get(RESULT, None)
    if result is not None:
        report.sections.append((EVIDENCE, result.explain()))
        windows = result.reconciled["coverage"]["windows"]
        report.sections.append(("fault windows", "\n".join(f"{w['fault']}: {w['proof']}" for w in windows)))


def refuse_skip(item: pytest.Item, report: pytest.TestReport) -> None:
    """Turn the skip of a test of onceproof into a failure if --onceproof-require is set."""
    if not report.skipped or hasattr(report, "wasxfail") or not settings.value(item.config, "require"):
        return
    if item.get_closest_marker("onceproof") is None:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{settings.flag('require')}: the test was skipped: {reason.removeprefix('Skipped: ')}"


def _properties(result: Result) -> dict[str, object]:
    return {
        "verdict": str(result.verdict),
        "as_expected": result.as_expected,
        "run_dir": str(result.run.path),
        "unavailable_s_max": result.reconciled["unavailable_s_max"],
        **{name: result.count(name) for name in COUNTS},
    }
