"""judge(): every reason for INCONCLUSIVE, and which verdict outweighs which."""

from __future__ import annotations

from typing import Any

import pytest

from harness.contracts import Mode, Verdict
from harness.expectation import complaint
from harness.guarantees import Conditions
from harness.verdict import Settings, judge

WINDOW = {
    "window": 0,
    "fault": "kill",
    "bit": True,
    "proof": "leader changed",
    "healed": True,
    "heal_proof": "in sync",
    "error": None,
}


NOT_ASKED = [
    {"topic": "orders", "partition": p, "anomalies": ["lost"], "why": "the final read_uncommitted reading stopped at 1200 of 5000"}
    for p in (0, 2)
]  # fmt: skip


def reconciled(**changes: Any) -> dict[str, Any]:
    """A clean run with one fault window; `counts`, `compared` and coverage can be changed by name."""
    coverage = {
        "windows": [dict(WINDOW)], "progress_before": 10, "progress_after": 10, "drained": True, "drain_detail": "",
        "reads": {"read_uncommitted": True, "read_committed": True}, "gaps": [], "errors": [], "in_flight": None,
    }  # fmt: skip
    base: dict[str, Any] = {
        "counts": {"lost": 0, "duplicated": 0, "phantom": 0},
        "compared": {"lost": 40, "duplicated": 40, "phantom": 40, "aborted_read": 0},
        "crashed": {},
        "excused": {},
        "coverage": coverage,
    }
    for name, value in changes.items():
        if name in ("counts", "compared"):
            base[name] = base[name] | value
        elif name in base:
            base[name] = value
        else:
            coverage[name] = value
    return base


ONE_WINDOW = Settings(windows=1)


def test_a_clean_run_holds() -> None:
    judgement = judge(reconciled(), Mode.AT_LEAST_ONCE, ONE_WINDOW)
    assert judgement.verdict is Verdict.HELD
    assert judgement.as_expected
    assert judgement.to_json() == {
        "verdict": "HELD", "expected": "HELD", "as_expected": True, "guarantee": "at_least_once", "violations": [],
        "counted": [], "inconclusive": [], "stalled": [], "required": {}, "found": {}, "standing": "as promised",
        "shortfalls": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"crashed": {"lost": "KeyError: x"}}, "the finder of lost crashed: KeyError: x"),
        ({"windows": []}, "1 fault windows were scheduled and 0 opened"),
        ({"windows": [WINDOW | {"bit": False, "proof": "nothing changed"}]}, "did not bite: nothing changed"),
        ({"windows": [WINDOW | {"healed": False, "heal_proof": "", "error": "no way back"}]}, "did not heal: no way back"),
        ({"progress_before": 0}, "no progress before the fault"),
        ({"progress_after": 0}, "no progress after the last window"),
        ({"drained": False, "drain_detail": "partition 0 at 3 of 9"}, "not drained to the end of the log: partition 0 at 3 of 9"),
        ({"reads": {"read_uncommitted": True, "read_committed": False}}, "the final read_committed reading is not complete"),
        ({"observed": {"observer-committed": 0, "observer-uncommitted": 9}}, "observer-committed got no records"),
        ({"gaps": ["harness.events: line 3 is torn"]}, "the ledger has a gap: harness.events"),
        ({"errors": ["run: no progress"]}, "an error during the run: run: no progress"),
        ({"not_asked": NOT_ASKED}, "lost was not asked of orders/0, orders/2: the final read_uncommitted reading stopped at 1200 of 5000"),
        ({"unjudged": {"unplaced": {"messages": 3, "first": "producer-1.0-7"}}}, "3 owed messages are missing whose position is not known"),
        ({"counts": {"late": 1}}, "1 of 40 owed messages (2.5%) are excused as late, more than 2%"),
        ({"counts": {"expired": 1}}, "1 of 40 owed messages (2.5%) are excused as expired"),
        ({"compared": {"lost": 0}}, "lost is forbidden, and nothing was there to compare"),
    ],
)  # fmt: skip
def test_each_doubt_makes_it_inconclusive(changes: dict[str, Any], reason: str) -> None:
    judgement = judge(reconciled(**changes), Mode.AT_LEAST_ONCE, ONE_WINDOW)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert len(judgement.inconclusive) == 1
    assert reason in judgement.inconclusive[0]
    assert not judgement.as_expected


def test_an_excuse_that_is_rare_or_meant_does_not_matter() -> None:
    """T12"""
    rare = reconciled(counts={"late": 2, "expired": 2}, compared={"lost": 100})
    assert judge(rare, Mode.AT_LEAST_ONCE, ONE_WINDOW).verdict is Verdict.HELD
    meant = reconciled(counts={"expired": 30})
    assert judge(meant, Mode.AT_LEAST_ONCE, Settings(windows=1, deletes=True)).verdict is Verdict.HELD
    scenario = {"schedule": [{"fault": {"fault": "delete_records"}, "deletes": True}]}
    assert Settings.of({"scenario": scenario}, reconciled()).deletes


def test_questions_not_asked_hide_no_violation() -> None:
    """T1: findings in partitions that were read whole stay evidence."""
    judgement = judge(reconciled(counts={"lost": 1}, not_asked=NOT_ASKED), Mode.AT_LEAST_ONCE, ONE_WINDOW)
    assert judgement.verdict is Verdict.VIOLATED
    assert any("not asked" in text for text in judgement.inconclusive)


def test_a_violation_outweighs_every_doubt() -> None:
    judgement = judge(reconciled(counts={"lost": 3}, drained=False), Mode.AT_LEAST_ONCE, ONE_WINDOW)
    assert judgement.verdict is Verdict.VIOLATED
    assert [(v.anomaly, v.count) for v in judgement.violations] == [("lost", 3)]
    assert judgement.inconclusive


def test_anomalies_that_a_mode_allows_are_counted() -> None:
    judgement = judge(reconciled(counts={"lost": 3}), Mode.AT_MOST_ONCE, ONE_WINDOW)
    assert judgement.verdict is Verdict.HELD
    assert [(c.anomaly, c.count) for c in judgement.counted] == [("lost", 3)]
    assert judgement.counted[0].reason


def test_nothing_compared_does_not_matter_where_it_is_allowed() -> None:
    assert judge(reconciled(compared={"lost": 0}), Mode.AT_MOST_ONCE, ONE_WINDOW).verdict is Verdict.HELD


def test_without_faults_no_window_is_needed() -> None:
    clean = reconciled(windows=[], progress_after=0)
    assert judge(clean, Mode.AT_LEAST_ONCE, Settings()).verdict is Verdict.HELD


def test_own_choices_excuse_unless_the_run_is_judged_as_a_mode() -> None:
    read = reconciled(
        counts={"aborted_read": 5},
        compared={"aborted_read": 50},
        excused={"aborted_read": {"read_uncommitted": 4}},
    )
    partly = judge(read, Mode.EXACTLY_ONCE, ONE_WINDOW)
    assert [(v.anomaly, v.count) for v in partly.violations] == [("aborted_read", 1)]
    assert [(c.anomaly, c.count) for c in partly.counted] == [("aborted_read", 4)]
    wholly = judge(read, Mode.EXACTLY_ONCE, Settings(windows=1, own_choices_excuse=False))
    assert [(v.anomaly, v.count) for v in wholly.violations] == [("aborted_read", 5)]


def test_a_rebalance_excuses_also_where_the_run_is_judged_as_another_mode() -> None:
    """It is no choice of the reader. A control that is judged as exactly-once must not be violated by it (E7, E13)."""
    went_back = reconciled(
        counts={"rewound": 3}, compared={"rewound": 50}, excused={"rewound": {"rebalance": 3}}
    )
    judged = judge(went_back, Mode.IDEMPOTENT, Settings(windows=1, own_choices_excuse=False))
    assert judged.violations == ()
    assert [(c.anomaly, c.count) for c in judged.counted] == [("rewound", 3)]


def test_settings_come_from_the_manifest() -> None:
    scenario = {"expected": "VIOLATED", "schedule": [{}, {}], "judged_as": "exactly_once"}
    settings = Settings.of({"scenario": scenario}, reconciled(in_flight=1))
    assert settings == Settings(Verdict.VIOLATED, 2, Conditions(in_flight=1), own_choices_excuse=False)
    assert Settings.of({"scenario": {}}, reconciled()) == Settings()


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"lost": 0}, "expected VIOLATED"),
        ({"lost": 48, "phantom": 2}, "phantom 2 is forbidden and not planted"),
    ],
)
def test_a_run_that_is_not_as_expected_has_its_reason(counts: dict[str, int], says: str) -> None:
    settings = Settings(expected=Verdict.VIOLATED, windows=1, requires={"lost": 1})
    judged = judge(reconciled(counts=counts), Mode.AT_LEAST_ONCE, settings)
    assert not judged.as_expected
    assert says in complaint(judged.verdict, judged.expected, judged.shortfalls)
