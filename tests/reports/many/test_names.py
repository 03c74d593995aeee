"""Names lose the beginning that all of them share, and only whole words of it."""

from __future__ import annotations

import pytest

from reports.many.names import ShortNames

NIGHT = ["night-7-001-exactly_once-kill", "night-7-002-exactly_once-none", "night-7-013-idempotent-sever"]


def test_the_shared_beginning_is_left_out() -> None:
    short = ShortNames.of(NIGHT)
    assert short.shared == "night-7-"
    assert [short(name) for name in NIGHT] == [
        "001-exactly_once-kill",
        "002-exactly_once-none",
        "013-idempotent-sever",
    ]


@pytest.mark.parametrize(
    "names",
    [
        [],
        NIGHT[:2],
        ["at_least_once-kill", "at_most_once-kill", "exactly_once-kill"],
        ["a-b-1", "a-b-2", "a-b-3"],
        ["night-7-001", "night-7-002", "other"],
    ],
    ids=["none", "too few", "nothing in common", "too short", "one differs"],
)
def test_names_stay_as_they_are(names: list[str]) -> None:
    short = ShortNames.of(names)
    assert short.shared == ""
    assert [short(name) for name in names] == names


def test_runs_of_one_scenario_keep_their_name() -> None:
    assert ShortNames.of(["night-7-001-kill"] * 5)("night-7-001-kill") == "night-7-001-kill"
