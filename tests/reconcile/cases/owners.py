"""Literal ledgers of a partition that is handed over from one member of a group to another."""

from __future__ import annotations

from pathlib import Path

from harness.ledger.literal_run import LiteralRun
from tests.reconcile.cases.base import OTHER, READER, Case, case


def handed_over(
    root: Path, *, early: bool, how: str = "revoked", late: bool = False, then: str = "revoked"
) -> LiteralRun:
    """A reader has partition 0; it is given to another one, before the first has given it back or after that.

    `late`: the second one has not polled for long; `then`: how its ownership ends.
    """
    run = LiteralRun(root)
    run.session(1)
    records = run.write(1, 10, 0)
    run.assign(READER, 0, 1)
    run.assign(OTHER, 2)
    run.give(READER, *records[:5])
    if early:
        run.assign(OTHER, 0, late=late)
    run.assign(READER, 0, how=how)
    if not early:
        run.assign(OTHER, 0)
    run.give(OTHER, *records[5:])
    if then:
        run.assign(OTHER, 0, how=then)
    return run


@case
def two_owners(root: Path) -> Case:
    return handed_over(root, early=True), {("two_owners", (), ())}


@case
def one_owner_after_the_other(root: Path) -> Case:
    return handed_over(root, early=False), set()


@case
def an_owner_that_had_lost_it_could_not_know(root: Path) -> Case:
    return handed_over(root, early=True, how="lost"), set()


@case
def an_assignment_that_a_member_learns_of_late_may_no_longer_count(root: Path) -> Case:
    return handed_over(root, early=True, late=True), set()


@case
def a_second_owner_that_lost_it_may_not_have_been_a_member_any_more(root: Path) -> Case:
    return handed_over(root, early=True, then="lost"), set()


@case
def a_second_owner_that_died_may_not_have_been_a_member_any_more(root: Path) -> Case:
    return handed_over(root, early=True, then=""), set()
