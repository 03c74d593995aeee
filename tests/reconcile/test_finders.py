"""Every finder on literal ledgers, all of them in one Spark job: what was planted is found, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness import registry

from .cases import CASES
from .together import Outcome, reconcile_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    root = tmp_path_factory.mktemp("cases")
    return reconcile_together(spark, {name: replace(make(root)[0], name=name) for name, make in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_exactly_what_was_planted_is_found(
    name: str, outcomes: Mapping[str, Outcome], tmp_path_factory: pytest.TempPathFactory
) -> None:
    _, planted = CASES[name](tmp_path_factory.getbasetemp())
    assert outcomes[name].found == planted


@pytest.mark.parametrize("name", CASES)
def test_nobody_is_found_who_was_not_suspected(name: str, outcomes: Mapping[str, Outcome]) -> None:
    assert {anomaly for anomaly, _, _ in outcomes[name].found} <= outcomes[name].suspected


@pytest.mark.parametrize("name", ["consistent", "consistent_transactions"])
def test_a_consistent_run_raises_no_suspicion(name: str, outcomes: Mapping[str, Outcome]) -> None:
    assert outcomes[name].suspected == frozenset()


def test_each_finder_has_a_case() -> None:
    covered = {anomaly for make in CASES.values() for anomaly, _, _ in make(None)[1]}  # type: ignore[arg-type]
    assert covered == set(registry.names("finder"))


def test_compared_counts_what_was_asked_about(outcomes: Mapping[str, Outcome]) -> None:
    everything = {
        "lost": 20, "duplicated": 20, "reordered": 20, "phantom": 20, "corrupted": 20, "misplaced": 20,
        "offset_conflict": 20, "undelivered": 20, "redelivered": 20, "expired": 20, "late": 20, "aborted_read": 0,
    }  # fmt: skip
    assert outcomes["consistent"].compared == everything
    assert outcomes["consistent_transactions"].compared["lost"] == 6
    assert outcomes["consistent_transactions"].compared["aborted_read"] == 6


def test_a_choice_of_read_uncommitted_excuses_aborted_reads(outcomes: Mapping[str, Outcome]) -> None:
    assert outcomes["aborted_read_by_choice"].excuses == {"aborted_read": 1}
    assert not outcomes["aborted_read"].excuses
