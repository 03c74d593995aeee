"""A late EndTxn ends the next transaction (KAFKA-17754): aborted records are visible, committed ones gone, without an error.

Each scenario is run five times, and each run has its own verdict. See docs/findings/KAFKA-17754.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from harness.campaign import Campaign, Result
from harness.contracts import Cluster, Outcome, Verdict
from harness.injector import why_not_applicable
from harness.ledger.reading import read_events
from harness.scenario import Scenario
from suites.scenarios.late_ends import LATE, RANDOM, WITHOUT_HOLD, Late
from suites.support.sessions import started_campaign, started_cluster

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1800)]  # five runs in a test

TIMES = 5
Repeat = Callable[[Scenario], Sequence[Result]]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with started_cluster(request.config) as started:
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    command = "pytest suites/hazards/test_late_end_transaction.py -k {name} --seed {seed}"
    with started_campaign(request.config, cluster, command) as campaign:
        yield campaign


@pytest.fixture
def repeat(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    campaign: Campaign,
    record_property: Callable[[str, object], None],
) -> Repeat:
    """Run a scenario five times, each with another seed, then reconcile and judge all runs."""

    def run(scenario: Scenario) -> Sequence[Result]:
        if reason := why_not_applicable(scenario, cluster):
            pytest.skip(reason)
        seed = request.config.getoption("--seed")
        waiting = [campaign.run(scenario.with_seed(seed + number)) for number in range(TIMES)]
        results = [each.result() for each in waiting]
        for verdict in Verdict:
            record_property(
                str(verdict), f"{sum(r.verdict is verdict for r in results)} of {len(results)} runs"
            )
        for result in results:
            record_property("run_dir", str(result.run.path))
            print(f"\n{result.explain()}")
            for window in result.reconciled["coverage"]["windows"]:
                print(f"  {window['proof']}\n  {window['heal_proof']}")
        return results

    return run


@pytest.mark.control
@pytest.mark.parametrize("late", LATE, ids=lambda late: late.uncured.name)
def test_a_late_end_breaks_the_next_transaction_without_an_error(repeat: Repeat, late: Late) -> None:
    results = repeat(late.uncured)
    assert [result.as_expected for result in results] == [True] * TIMES, explained(results)
    for result in results:
        assert not result.judgement.inconclusive, result.explain()
        session, txn = transaction_at_delivery(result, late)
        assert broken_transactions(result) == {txn}, result.explain()
        assert end_of(result, late, session, txn) is Outcome.ACKED, (
            "the library reported to its producer that it ended"
        )
        assert_silent(result, late)


@pytest.mark.parametrize("scenario", [*WITHOUT_HOLD, *(late.in_time for late in LATE)], ids=lambda s: s.name)
def test_without_the_delay_the_promises_hold(repeat: Repeat, scenario: Scenario) -> None:
    results = repeat(scenario)
    assert [result.verdict for result in results] == [Verdict.HELD] * TIMES, explained(results)
    for result in results:
        transactions = result.reconciled["coverage"]["transactions"]
        assert transactions["committed"] > 0
        assert transactions["aborted"] > 0


@pytest.mark.parametrize("late", LATE, ids=lambda late: late.cured.name)
def test_a_new_producer_after_a_timed_out_end_is_the_cure(repeat: Repeat, late: Late) -> None:
    results = repeat(late.cured)
    assert [result.verdict for result in results] == [Verdict.HELD] * TIMES, explained(results)
    for result in results:
        lost = [e for e in events(result, late.worker) if e["event"] == "lost_producer"]
        opened, delivered = step_of_window(result, "open"), step_of_window(result, "heal")
        given_up = [e for e in lost if opened < e["t"] < delivered]
        assert given_up, "no producer gave up on its transaction, so the run shows nothing"
        assert "_TIMED_OUT" in given_up[0]["text"]
        session, _ = transaction_at_delivery(result, late)
        assert session > given_up[0]["session"], "the late request met a new producer"


@pytest.mark.control
def test_it_happens_without_aiming(repeat: Repeat, record_property: Callable[[str, object], None]) -> None:
    results = repeat(RANDOM)
    hit = [result for result in results if result.verdict is Verdict.VIOLATED]
    record_property("hit", f"{len(hit)} of {len(results)} runs")
    for result in hit:
        record_property("anomalies", ", ".join(sorted(result.violations)))
    assert hit, explained(results)


# --- reading the ledger ------------------------------------------------------------------------------


def events(result: Result, writer: str) -> list[dict[str, Any]]:
    """Return the events of a worker, or of the harness itself, in order of time."""
    paths = [p for p in result.run.ledger.glob("*.events") if p.name.split(".")[0] == writer]
    return sorted((e for path in paths for e in read_events(path)), key=lambda e: e["t"])


def end_of(result: Result, late: Late, session: int, txn: int) -> Outcome:
    """Return the outcome that the worker recorded for the end of this transaction."""
    ended = [e for e in events(result, late.worker) if (e["event"], e.get("step")) == ("txn", "ended")]
    (outcome,) = (e["outcome"] for e in ended if (e["session"], e["txn"]) == (session, txn))
    return Outcome(outcome)


def transaction_at_delivery(result: Result, late: Late) -> tuple[int, int]:
    """Return session and number of the worker's transaction at the delivery of the late request."""
    released = step_of_window(result, "heal")
    begun = [e for e in events(result, late.worker) if e["event"] == "txn" and e["step"] == "begin"]
    last = [e for e in begun if e["t"] < released][-1]
    return last["session"], last["txn"]


def step_of_window(result: Result, step: str) -> int:
    """Return the time of this step of the run's only window."""
    (t,) = (e["t"] for e in events(result, "harness") if (e["event"], e.get("step")) == ("window", step))
    return int(t)


def broken_transactions(result: Result) -> set[int]:
    """Return the numbers of the transactions that the forbidden findings name."""
    forbidden = [f for f in result.reconciled["findings"] if f["anomaly"] in result.violations]
    return {int(f["evidence"]["txn"]) for f in forbidden if "txn" in (f["evidence"] or {})}


def assert_silent(result: Result, late: Late) -> None:
    """Check that the library reported success for every end of a transaction and every record, and lost no producer."""
    written = events(result, late.worker)
    ends = [e for e in written if e["event"] == "txn" and e["step"] == "ended"]
    assert ends
    assert {e["outcome"] for e in ends} == {Outcome.ACKED}
    assert all(e["did"] == e["intent"] for e in ends)
    assert not [e for e in written if e["event"] in ("lost_producer", "error")]
    assert result.count("acked") == result.count("attempted")


def explained(results: Sequence[Result]) -> str:
    return "\n".join(result.explain() for result in results)
