"""The anomalies that a scenario must raise: the one rule for controls and counted losses (E13). Pure.

A control is satisfied only by the anomalies that it requires, each found at least as often as required, by its own finder,
in a run whose fault windows all bit. Forbidden anomalies that it neither requires nor tolerates are violations like any other.
Any other doubt about the run leaves the control unproven: what was found may come from the failure that the doubt names.
A scenario that is expected to be HELD may require anomalies that its guarantee allows and counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.contracts import Mode, Verdict
from harness.errors import LedgerError
from harness.guarantees import TABLE, Rule, Unless


class Standing(StrEnum):
    """A verdict compared with the expected one: this, not the verdict itself, is good or bad news."""

    AS_PROMISED = "as promised"
    BROKEN = "promise violated"  # an anomaly that the scenario does not plant
    MISSED = "not caught"  # a required anomaly was not found: the harness may be blind here
    UNREADABLE = "cannot be read"
    UNPROVEN = "proves nothing"


class Lack(StrEnum):
    """The kind of a reason why a run does not satisfy its scenario."""

    MISSED = "missed"
    UNPLANTED = "unplanted"  # forbidden, and neither required nor tolerated
    UNPROVEN = "unproven"


@dataclass(frozen=True)
class Shortfall:
    kind: Lack
    text: str


@dataclass(frozen=True)
class Evidence:
    """Facts about a judged run that the rule needs."""

    forbidden: Mapping[str, int] = field(default_factory=dict)  # anomalies that violate the guarantee
    counted: Mapping[str, int] = field(default_factory=dict)  # anomalies that it allows
    compared: Mapping[str, int] = field(default_factory=dict)
    crashed: Mapping[str, str] = field(default_factory=dict)
    unbitten: Collection[str] = ()  # fault windows that did not open or did not bite, a line each
    doubts: Collection[str] = ()  # every other doubt about the run


def found(expected: Verdict, requires: Iterable[str], evidence: Evidence) -> dict[str, int]:
    """Count the findings of each required anomaly: violations, or counted ones if the run is expected to be HELD."""
    counts = evidence.forbidden if expected is Verdict.VIOLATED else evidence.counted
    return {anomaly: counts.get(anomaly, 0) for anomaly in requires}


def shortfalls(
    expected: Verdict, requires: Mapping[str, int], tolerates: Collection[str], evidence: Evidence
) -> Iterator[Shortfall]:
    """Yield every reason why the run does not satisfy the requirements of its scenario."""
    for anomaly, times in found(expected, requires, evidence).items():
        for why in _missed(anomaly, requires[anomaly], times, evidence):
            yield Shortfall(Lack.MISSED, why)
    if expected is not Verdict.VIOLATED:
        return
    if not requires:
        yield Shortfall(Lack.MISSED, "the scenario names no anomaly that it must raise")
    for text in evidence.unbitten:
        yield Shortfall(Lack.MISSED, text)
    for anomaly, times in evidence.forbidden.items():
        if anomaly not in requires and anomaly not in tolerates:
            yield Shortfall(Lack.UNPLANTED, f"{anomaly} {times} is forbidden and not planted by this control")
    for text in evidence.doubts:
        yield Shortfall(Lack.UNPROVEN, text)


def _missed(anomaly: str, at_least: int, times: int, evidence: Evidence) -> Iterator[str]:
    if anomaly in evidence.crashed:
        yield f"the finder of {anomaly} crashed: {evidence.crashed[anomaly]}"
    elif not evidence.compared.get(anomaly):
        yield f"{anomaly}: nothing was compared"
    if times < at_least:
        yield requirement_text({anomaly: at_least}, {anomaly: times})


def standing(verdict: str, expected: str, lacking: Collection[str]) -> Standing:
    """Compare a verdict with the expected one; `lacking` has the kinds of all shortfalls."""
    if expected == Verdict.VIOLATED and verdict == Verdict.VIOLATED:
        order = (
            (Lack.MISSED, Standing.MISSED),
            (Lack.UNPLANTED, Standing.BROKEN),
            (Lack.UNPROVEN, Standing.UNPROVEN),
        )
        return next((each for lack, each in order if lack in lacking), Standing.AS_PROMISED)
    if verdict == expected:
        return Standing.MISSED if lacking else Standing.AS_PROMISED
    if verdict == Verdict.VIOLATED:
        return Standing.BROKEN
    return Standing.UNPROVEN if verdict == Verdict.INCONCLUSIVE else Standing.MISSED


def complaint(verdict: str, expected: str, lacking: Sequence[Shortfall]) -> str:
    """Return why a run is not as expected: the first requirement that is not met, or the verdict that was expected."""
    return lacking[0].text if verdict == expected and lacking else f"expected {expected}"


def requirement_text(
    requires: Mapping[str, int], times: Mapping[str, int], also: Mapping[str, int] | None = None
) -> str:
    """Return `required: lost >= 1; found: lost 48`, and after `also` other anomalies that were found."""
    required = ", ".join(f"{anomaly} >= {bound}" for anomaly, bound in requires.items())
    seen = ", ".join(f"{anomaly} {times.get(anomaly, 0)}" for anomaly in requires)
    more = ", ".join(f"{anomaly} {count}" for anomaly, count in (also or {}).items())
    return f"required: {required or 'nothing'}; found: {seen or 'nothing'}" + (
        f"; also: {more}" if more else ""
    )


def required_by(scenario: Mapping[str, Any]) -> tuple[dict[str, int], frozenset[str], frozenset[str]]:
    """Return what the scenario of a manifest requires, tolerates and forbids besides its guarantee.

    Older manifests have none of these: their controls are missed.
    """
    requires = scenario.get("requires") or {}
    if not isinstance(requires, Mapping) or not all(map(_is_bound, requires.values())):
        raise LedgerError(
            f"manifest.json: scenario.requires is {requires!r}; it maps anomalies to whole numbers of at least 1"
        )
    return dict(requires), _anomalies(scenario, "tolerates"), _anomalies(scenario, "forbids")


def _anomalies(scenario: Mapping[str, Any], name: str) -> frozenset[str]:
    anomalies = scenario.get(name) or ()
    if not isinstance(anomalies, list | tuple) or not all(isinstance(each, str) for each in anomalies):
        raise LedgerError(f"manifest.json: scenario.{name} is {anomalies!r}; it is a list of anomalies")
    return frozenset(anomalies)


def _is_bound(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


# --- when a scenario is made ---------------------------------------------------------------------


def check(
    expected: Verdict,
    guarantee: Mode,
    requires: Mapping[str, int],
    tolerates: Collection[str],
    forbids: Collection[str] = (),
) -> None:
    """Raise ValueError, with one line, for requirements that this guarantee cannot satisfy."""
    for anomaly in forbids:
        _must_be_asked("Scenario.forbids", anomaly, guarantee, Rule.COUNTED)
    if expected is Verdict.VIOLATED and not requires:
        raise ValueError(
            "Scenario.requires: a scenario that is expected to be VIOLATED names the anomaly it must raise, "
            'such as {"lost": 1}'
        )
    if expected is Verdict.INCONCLUSIVE and requires:
        raise ValueError(
            "Scenario.requires: a scenario that is expected to be INCONCLUSIVE can require nothing"
        )
    if expected is not Verdict.VIOLATED and tolerates:
        raise ValueError(
            f"Scenario.tolerates: only a scenario that is expected to be VIOLATED tolerates anomalies, not {expected}"
        )
    rule = Rule.FORBIDDEN if expected is Verdict.VIOLATED else Rule.COUNTED
    for anomaly, at_least in requires.items():
        if rule is not Rule.FORBIDDEN or anomaly not in forbids:
            _must_be_asked("Scenario.requires", anomaly, guarantee, rule)
        if not _is_bound(at_least):
            raise ValueError(f"Scenario.requires: {anomaly} has to be at least 1, not {at_least!r}")
    for anomaly in tolerates:
        if anomaly not in forbids:
            _must_be_asked("Scenario.tolerates", anomaly, guarantee, rule)
        if anomaly in requires:
            raise ValueError(f"Scenario.tolerates: {anomaly} is required; leave it out here")


def _must_be_asked(field_name: str, anomaly: str, guarantee: Mode, rule: Rule) -> None:
    if anomaly not in TABLE:
        raise ValueError(f"{field_name}: unknown anomaly {anomaly!r}; choose one of {', '.join(TABLE)}")
    able = [name for name in TABLE if _may_be(name, guarantee, rule)]
    if anomaly not in able:
        verb = "forbid" if rule is Rule.FORBIDDEN else "count"
        raise ValueError(
            f"{field_name}: {guarantee} does not {verb} {anomaly}; choose one of {', '.join(able)}"
        )


def _may_be(anomaly: str, guarantee: Mode, rule: Rule) -> bool:
    """Return True if the guarantee has this rule for the anomaly: always, under a condition or with an excuse."""
    cell = TABLE[anomaly][guarantee]
    cells = (cell.normally, cell.then) if isinstance(cell, Unless) else (cell,)
    return any(each.rule is rule or (rule is Rule.COUNTED and bool(each.excuses)) for each in cells)
