"""Every finder on literal ledgers, all of them in one Spark job: what was planted is found, and nothing more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.reconcile.job import all_finders
from tests.reconcile.cases import CASES
from tests.reconcile.together import Outcome

ASKED = [finder.anomaly for finder in all_finders()]


@pytest.mark.parametrize("name", CASES)
def test_exactly_what_was_planted_is_found(
    name: str, outcomes: Mapping[str, Outcome], tmp_path: Path
) -> None:
    _, planted = CASES[name](tmp_path)
    assert outcomes[name].found == planted


def test_each_finder_has_a_case(tmp_path: Path) -> None:
    covered = {anomaly for make in CASES.values() for anomaly, _, _ in make(tmp_path)[1]}
    assert covered == set(ASKED)


@pytest.mark.parametrize("name", CASES)
def test_counts_agree_with_the_findings(name: str, outcomes: Mapping[str, Outcome]) -> None:
    counts = outcomes[name].result["counts"]
    found = Counter(anomaly for anomaly, _, _ in outcomes[name].found)
    assert {anomaly: counts.get(anomaly, 0) for anomaly in ASKED} == {a: found[a] for a in ASKED}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_is_explained_in_full(name: str, outcomes: Mapping[str, Outcome]) -> None:
    findings = outcomes[name].result["findings"]
    assert {f["anomaly"] for f in findings} == {anomaly for anomaly, _, _ in outcomes[name].found}
    for finding in findings:
        assert finding["text"].endswith(".")
        assert "None" not in finding["text"]
        assert finding["topic"].startswith("orders")


def test_the_text_of_a_loss_says_where_the_record_is(outcomes: Mapping[str, Outcome]) -> None:
    def text_of(name: str) -> str:
        return next(str(f["text"]) for f in outcomes[name].result["findings"] if f["anomaly"] == "lost")

    assert "is in the log at offset 9 as aborted" in text_of("torn_by_a_late_abort")
    assert "found it nowhere in the log" in text_of("torn")


def test_compared_counts_what_was_asked_about(outcomes: Mapping[str, Outcome], tmp_path: Path) -> None:
    plain = outcomes["consistent"].result["compared"]
    # Some count each time a record was met: in the log and delivered; acked, too.
    several = {"corrupted": 40, "offset_conflict": 60}
    # Steps are one fewer than deliveries in each partition; two partitions were committed; no keys, no transactions.
    steps = {"skipped": 18, "rewound": 18, "overcommitted": 2, "two_owners": 3}
    none = dict.fromkeys(("key_reordered", "aborted_read", "premature_read", "torn"), 0)
    of_pipelines = {"double_effect", "missing_effect"}
    assert plain == dict.fromkeys(set(ASKED) - of_pipelines, 20) | several | steps | none
    piped = outcomes["consistent_pipeline"].result["compared"]
    run = CASES["consistent_pipeline"](tmp_path)[0]
    committed = sum(1 for one in run.log if one.txn == 2)
    assert (piped["missing_effect"], piped["double_effect"]) == (12, committed)
    transactional = outcomes["consistent_transactions"].result["compared"]
    assert (transactional["lost"], transactional["aborted_read"], transactional["duplicated"]) == (6, 12, 9)


def test_a_choice_of_read_uncommitted_excuses_aborted_reads(outcomes: Mapping[str, Outcome]) -> None:
    assert outcomes["aborted_read_by_choice"].result["excused"] == {"aborted_read": {"read_uncommitted": 3}}
    assert outcomes["aborted_read"].result["excused"] == {}
