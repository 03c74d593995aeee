"""A scenario names what it must raise: what satisfies a control, what does not, and which names are refused (E13)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.contracts import Mode, Verdict
from harness.errors import LedgerError
from harness.expectation import Lack, Standing
from harness.guarantees import Conditions
from harness.scenario import Scenario
from harness.verdict import Judgement, Settings, judge
from tests.test_verdict import WINDOW, reconciled

CONTROL = Settings(expected=Verdict.VIOLATED, windows=1, requires={"lost": 1})
COUNTED = Settings(windows=1, requires={"lost": 5})


def control(settings: Settings = CONTROL, guarantee: Mode = Mode.AT_LEAST_ONCE, **changes: Any) -> Judgement:
    return judge(reconciled(**changes), guarantee, settings)


def lacks(judgement: Judgement) -> list[Lack]:
    return [shortfall.kind for shortfall in judgement.shortfalls]


def test_a_control_that_raises_what_it_must_is_as_expected() -> None:
    judged = control(counts={"lost": 48})
    assert judged.as_expected
    assert judged.standing is Standing.AS_PROMISED
    as_json = judged.to_json()
    assert (as_json["required"], as_json["found"]) == ({"lost": 1}, {"lost": 48})
    assert (as_json["as_expected"], as_json["standing"], as_json["shortfalls"]) == (True, "as promised", [])


# TRUST T3: all three at once were "as expected".
def test_an_unrelated_violation_does_not_satisfy_a_control() -> None:
    judged = control(
        guarantee=Mode.IDEMPOTENT,
        counts={"reordered": 1},
        compared={"reordered": 40},
        crashed={"lost": "KeyError: x"},
        windows=[WINDOW | {"bit": False, "proof": "nothing changed"}],
    )
    assert judged.verdict is Verdict.VIOLATED
    assert not judged.as_expected
    assert judged.standing is Standing.MISSED
    assert {Lack.MISSED, Lack.UNPLANTED} <= set(lacks(judged))


# TRUST T3: each of the three alone.
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"crashed": {"lost": "KeyError: x"}}, "the finder of lost crashed: KeyError: x"),
        ({"windows": [WINDOW | {"bit": False, "proof": "nothing changed"}]}, "did not bite: nothing changed"),
        ({"windows": []}, "1 fault windows were scheduled and 0 opened"),
        ({"compared": {"lost": 0}}, "lost: nothing was compared"),
        ({"counts": {"lost": 0, "phantom": 3}}, "required: lost >= 1; found: lost 0"),
    ],
)
def test_a_control_is_missed_without_its_own_evidence(changes: dict[str, Any], says: str) -> None:
    judged = control(**{"counts": {"lost": 3}, **changes})
    assert judged.verdict is Verdict.VIOLATED
    assert not judged.as_expected
    assert any(s.kind is Lack.MISSED and says in s.text for s in judged.shortfalls), judged.shortfalls


def test_the_bound_is_a_lower_one() -> None:
    settings = Settings(expected=Verdict.VIOLATED, windows=1, requires={"lost": 10})
    assert control(settings, counts={"lost": 10}).as_expected
    short = control(settings, counts={"lost": 9})
    assert (short.standing, lacks(short)) == (Standing.MISSED, [Lack.MISSED])


def test_every_required_anomaly_has_to_be_found() -> None:
    settings = Settings(expected=Verdict.VIOLATED, windows=1, requires={"lost": 1, "phantom": 2})
    assert control(settings, counts={"lost": 1, "phantom": 2}).as_expected
    assert control(settings, counts={"lost": 1, "phantom": 1}).standing is Standing.MISSED


def test_a_violation_that_the_control_does_not_plant_is_a_violation() -> None:
    judged = control(counts={"lost": 3, "phantom": 2})
    assert (judged.standing, lacks(judged)) == (Standing.BROKEN, [Lack.UNPLANTED])
    assert "phantom 2" in judged.shortfalls[0].text


def test_tolerated_anomalies_are_allowed_and_not_required() -> None:
    settings = Settings(
        expected=Verdict.VIOLATED, windows=1, requires={"lost": 1}, tolerates=frozenset({"phantom"})
    )
    assert control(settings, counts={"lost": 3, "phantom": 2}).as_expected
    assert control(settings, counts={"lost": 3}).as_expected
    assert control(settings, counts={"phantom": 2}).standing is Standing.MISSED


@pytest.mark.parametrize(
    "changes",
    [
        {"errors": ["run: disk full"]},
        {"reads": {"read_uncommitted": False, "read_committed": True}},
        {"drained": False},
        {"progress_after": 0},
        {"windows": [WINDOW | {"healed": False}]},
        {"crashed": {"phantom": "KeyError: x"}},
        {"doubts": ["clocks differ"]},
    ],
    ids=str,
)
def test_a_control_of_a_doubtful_run_is_unproven(changes: dict[str, Any]) -> None:
    """The findings may come from the failure that the doubt names, so they satisfy nothing."""
    judged = control(counts={"lost": 3}, **changes)
    assert judged.verdict is Verdict.VIOLATED
    assert (judged.standing, set(lacks(judged))) == (Standing.UNPROVEN, {Lack.UNPROVEN})


def test_a_control_with_a_gap_in_its_ledger_is_unproven_and_has_no_violations() -> None:
    judged = control(counts={"lost": 3}, gaps=["harness.events: line 3 is torn"])
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert [(v.anomaly, v.count) for v in judged.violations] == [("lost", 3)]
    assert (judged.standing, set(lacks(judged))) == (Standing.UNPROVEN, {Lack.UNPROVEN})


def test_questions_that_the_control_does_not_ask_may_stay_open() -> None:
    """A run without transactions that is judged as exactly-once has none to compare."""
    judged = control(guarantee=Mode.EXACTLY_ONCE, counts={"lost": 1}, compared={"aborted_read": 0})
    assert any("aborted_read" in text for text in judged.inconclusive)
    assert judged.as_expected


def test_a_control_that_names_nothing_is_never_satisfied() -> None:
    judged = control(Settings(expected=Verdict.VIOLATED, windows=1), counts={"lost": 3})
    assert judged.standing is Standing.MISSED


@pytest.mark.parametrize(
    ("changes", "standing"),
    [({}, Standing.MISSED), ({"errors": ["run: disk full"]}, Standing.UNPROVEN)],
    ids=str,
)
def test_a_control_that_finds_nothing(changes: dict[str, Any], standing: Standing) -> None:
    assert control(**changes).standing is standing


# --- counted losses of runs that hold: TRUST T4 ---


def test_required_losses_are_counted_where_the_mode_allows_them() -> None:
    enough = control(COUNTED, Mode.AT_MOST_ONCE, counts={"lost": 5})
    assert (enough.verdict, enough.standing) == (Verdict.HELD, Standing.AS_PROMISED)
    assert enough.to_json()["found"] == {"lost": 5}
    few = control(COUNTED, Mode.AT_MOST_ONCE, counts={"lost": 4})
    assert (few.verdict, few.standing, lacks(few)) == (Verdict.HELD, Standing.MISSED, [Lack.MISSED])
    assert "required: lost >= 5; found: lost 4" in few.shortfalls[0].text


def test_required_losses_never_excuse_a_violation_or_a_doubt() -> None:
    broken = control(COUNTED, Mode.AT_MOST_ONCE, counts={"lost": 5, "phantom": 1})
    assert broken.standing is Standing.BROKEN
    doubtful = control(COUNTED, Mode.AT_MOST_ONCE, counts={"lost": 5}, drained=False)
    assert doubtful.standing is Standing.UNPROVEN


# --- the names, when a scenario is made ---


def made(**changes: Any) -> Scenario:
    return Scenario(**{"name": "a", "mode": Mode.AT_LEAST_ONCE, "expected": Verdict.VIOLATED, **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "Scenario.requires: a scenario that is expected to be VIOLATED names the anomaly it must raise"),
        ({"requires": {"lots": 1}}, "Scenario.requires: unknown anomaly 'lots'; choose one of lost, "),
        ({"requires": {"duplicated": 1}}, "at_least_once does not forbid duplicated"),
        ({"requires": {"expired": 1}}, "at_least_once does not forbid expired"),
        ({"requires": {"lost": 0}}, "Scenario.requires: lost has to be at least 1, not 0"),
        ({"requires": {"lost": True}}, "lost has to be at least 1, not True"),
        ({"requires": {"lost": "9"}}, "lost has to be at least 1, not '9'"),
        ({"requires": {"lost": 1}, "tolerates": ("losst",)}, "Scenario.tolerates: unknown anomaly 'losst'"),
        ({"requires": {"lost": 1}, "tolerates": ("lost",)}, "lost is required"),
        ({"requires": {"lost": 1}, "tolerates": ("duplicated",)}, "at_least_once does not forbid duplicated"),
        ({"expected": Verdict.HELD, "requires": {"lost": 1}}, "at_least_once does not count lost"),
        ({"expected": Verdict.HELD, "tolerates": ("lost",)}, "Scenario.tolerates: only a scenario that is"),
        ({"expected": Verdict.INCONCLUSIVE, "requires": {"lost": 1}}, "INCONCLUSIVE can require nothing"),
        (
            {"requires": {"lost": 1}, "forbids": ("lost",)},
            "Scenario.forbids: at_least_once does not count lost",
        ),
        ({"requires": {"lost": 1}, "forbids": ("losst",)}, "Scenario.forbids: unknown anomaly 'losst'"),
        ({"expected": Verdict.HELD, "requires": {"lost": 1}, "forbids": ("expired",)}, "does not count lost"),
    ],
    ids=str,
)
def test_a_wrong_requirement_is_named_in_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # its text is looked at
        made(**changes)
    text = str(refused.value)
    assert says in text
    assert "\n" not in text


def test_requirements_are_judged_by_the_guarantee_not_by_the_mode() -> None:
    judged = made(judged_as=Mode.EXACTLY_ONCE, requires={"duplicated": 1}, tolerates=("reordered",))
    assert judged.requires == {"duplicated": 1}
    counting = made(mode=Mode.AT_MOST_ONCE, expected=Verdict.HELD, requires={"lost": 1})
    assert counting.requires == {"lost": 1}
    assert made(requires={"reordered": 1}).requires, "forbidden with one request in flight"


def test_requirements_are_in_the_manifest_and_come_back_from_it() -> None:
    scenario = made(requires={"lost": 2}, tolerates=("phantom",), forbids=("redelivered",))
    described = scenario.describe()
    assert (described["requires"], described["tolerates"]) == ({"lost": 2}, ["phantom"])
    assert described["forbids"] == ["redelivered"]
    settings = Settings.of({"scenario": described}, reconciled())
    assert (settings.requires, settings.tolerates) == ({"lost": 2}, frozenset({"phantom"}))
    assert settings.conditions.forbids == {"redelivered"}


def test_what_the_application_cannot_tolerate_is_forbidden_although_its_guarantee_allows_it() -> None:
    assert made(requires={"expired": 1}, forbids=("expired",)).requires
    own = Conditions(forbids=frozenset({"expired"}))
    settings = Settings(expected=Verdict.VIOLATED, windows=1, requires={"expired": 3}, conditions=own)
    judged = control(settings, counts={"expired": 3}, compared={"expired": 40})
    assert (judged.verdict, judged.as_expected) == (Verdict.VIOLATED, True)
    assert not judged.inconclusive, "it excuses nothing, so it leaves no doubt"


@pytest.mark.parametrize(
    "scenario",
    [
        {"requires": ["lost"]},
        {"requires": {"lost": "9"}},
        {"requires": {"lost": -1}},
        {"requires": "lost"},
        {"tolerates": "lost"},
        {"tolerates": [3]},
        {"forbids": "lost"},
    ],
    ids=str,
)
def test_a_damaged_requirement_of_a_manifest_is_refused_in_one_line(scenario: dict[str, Any]) -> None:
    with pytest.raises(
        LedgerError, match=r"^manifest\.json: scenario\.(requires|tolerates|forbids) is [^\n]+$"
    ):
        Settings.of({"scenario": {"expected": "VIOLATED", **scenario}}, reconciled())
