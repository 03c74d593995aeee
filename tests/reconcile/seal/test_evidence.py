"""Evidence that is not whole: never VIOLATED because of records that were not read, never HELD without a doubt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.contracts import Mode, Verdict
from harness.reconcile.screen import screen
from harness.reconcile.screen.facts import facts as facts_of
from harness.reconcile.screen.summaries import Count, weigh
from harness.reconcile.seal.seal import seal
from harness.reconcile.spark.stored_tables import read_small
from harness.verdict import Settings, judge
from tests.reconcile.cases import CASES
from tests.reconcile.cases.evidence import DOUBTS
from tests.reconcile.together import Outcome

NOTHING_COMPARED = "nothing was there to compare"
MISSING = {"lost", "torn", "undelivered"}
FORBIDDEN = {"lost", "torn", "undelivered", "missing_effect", "skipped"}


@pytest.mark.parametrize("name", DOUBTS)
def test_the_judge_says_what_was_not_asked_or_excused(
    name: str, outcomes: Mapping[str, Outcome], tmp_path: Path
) -> None:
    run, planted = CASES[name](tmp_path)
    judgement = judge(outcomes[name].result, run.mode, Settings())
    violated = bool({anomaly for anomaly, _, _ in planted} & FORBIDDEN)
    # Ledgers as small as these have no keys and no aborted transactions: not what is asked here.
    doubts = [text for text in judgement.inconclusive if NOTHING_COMPARED not in text]
    if DOUBTS[name]:
        assert any(DOUBTS[name] in text for text in doubts), doubts
        assert judgement.verdict is (Verdict.VIOLATED if violated else Verdict.INCONCLUSIVE)
    else:
        assert doubts == []
        assert judgement.verdict is not Verdict.VIOLATED


def test_a_reading_that_stops_anywhere_adds_no_accusation(
    cut_readings: Mapping[str, Any], outcomes: Mapping[str, Outcome]
) -> None:
    """T1: whatever of a random history was not read, nothing is lost, torn or undelivered that was not so before."""
    asked = 0
    for name in cut_readings:
        before, after = (
            {(f[0], m) for f in outcomes[run].found if f[0] in MISSING for m in f[1] or f[2]}
            for run in (name.removeprefix("cut-"), name)
        )
        assert after <= before, f"{name}: {after - before}"
        asked += len(before - after)
    assert asked > 0, "no reading was cut where it mattered"


def test_questions_not_asked_are_not_counted_as_compared(outcomes: Mapping[str, Outcome]) -> None:
    """E9: twenty are owed, ten of them in a partition that was not read whole."""
    whole, half = (outcomes[name].result for name in ("consistent", "a_reading_that_stopped_half_way"))
    assert (whole["compared"]["lost"], half["compared"]["lost"]) == (20, 10)
    none = outcomes["a_run_that_was_stopped_before_the_reading"].result
    assert (none["compared"]["lost"], none["compared"]["undelivered"]) == (0, 0)
    assert half["coverage"]["unjudged"] == {"not asked": {"messages": 6, "first": "producer-1.0-4"}}


@pytest.mark.parametrize(
    ("name", "owed"),
    [("consistent", 20), ("a_reading_that_stopped_half_way", 10), ("an_unknown_partition_needs_all_of_them", 6),
     ("lost_in_an_unknown_partition", 7), ("a_run_that_was_stopped_before_the_reading", 0)],
)  # fmt: skip
def test_kernels_count_as_owed_what_was_read_whole(name: str, owed: int, tmp_path: Path) -> None:
    run = CASES[name](tmp_path)[0].finish()
    sealed = seal(run)
    [facts] = facts_of(read_small({run.tables: sealed}), [sealed])
    kernel, columns = screen.READ["attempts"]
    batches = pq.read_table(run.tables / "attempts").to_batches()
    made = [kernel(c, facts) for _, c in screen.by_runs(batches, columns)]
    counts = [screen.Screened(s, weigh(s)).count(Count.OWED) for s in made]
    assert sum(counts) == owed


def test_coverage_lists_the_partitions_with_the_reason(outcomes: Mapping[str, Outcome]) -> None:
    assert outcomes["consistent"].result["coverage"]["not_asked"] == []
    assert outcomes["a_reading_that_stopped_half_way"].result["coverage"]["not_asked"] == [
        {
            "topic": "orders",
            "partition": 0,
            "anomalies": ["lost"],
            "why": "the final read_uncommitted reading stopped at 4 of 10",
        }
    ]


def test_expired_records_of_a_deleting_fault_raise_no_doubt(outcomes: Mapping[str, Outcome]) -> None:
    """T12"""
    expired = outcomes["deleted_while_it_was_read"].result
    assert judge(expired, Mode.AT_LEAST_ONCE, Settings(deletes=True)).verdict is Verdict.HELD


def test_where_losses_are_allowed_unknown_positions_do_not_matter(outcomes: Mapping[str, Outcome]) -> None:
    """T5"""
    lost_or_expired = outcomes["deleted_or_lost_is_unknown"].result
    assert judge(lost_or_expired, Mode.AT_MOST_ONCE, Settings()).verdict is Verdict.HELD
