"""judge(): the verdict on a run, from the results of reconciliation and the promise. Pure.

VIOLATED outweighs INCONCLUSIVE, which outweighs HELD: evidence of a broken promise stays evidence whatever else
went wrong, and a clean result counts only if the run proves that something was tested. The exception is a ledger
with a gap: a missing line of the ledger can look like any anomaly, so such a run is INCONCLUSIVE whatever was found (E12).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.contracts import Mode, Verdict
from harness.expectation import Evidence, Shortfall, Standing, found, required_by, shortfalls, standing
from harness.guarantees import SHARE_GROUP, TABLE, Conditions, Rule, promise

MOST_EXCUSED = 0.02  # share of the owed messages (E14)
MOST_REASONS = 8  # in one line
OWN_CHOICES = frozenset({"read_uncommitted"})  # excuses by the reader's own configuration, unlike a rebalance


@dataclass(frozen=True)
class Settings:
    """Facts about the scenario that the judge needs."""

    expected: Verdict = Verdict.HELD
    windows: int = 0  # how many fault windows were scheduled
    conditions: Conditions = field(default_factory=Conditions)
    # A run that is judged as another mode than it ran in must keep every promise of that mode, its isolation included:
    # then the group's choice of read_uncommitted excuses nothing.
    own_choices_excuse: bool = True
    # Anomalies that the run must raise, with lower bounds
    requires: Mapping[str, int] = field(default_factory=dict)
    tolerates: frozenset[str] = frozenset()
    deletes: bool = False  # a scheduled fault deletes records, so expired ones are intended

    @classmethod
    def of(cls, manifest: Mapping[str, Any], reconciled: Mapping[str, Any]) -> Settings:
        scenario, seen = manifest["scenario"], reconciled.get("coverage", {})
        requires, tolerates, forbids = required_by(scenario)
        return cls(
            expected=Verdict(scenario.get("expected", Verdict.HELD)),
            windows=len(scenario.get("schedule") or ()),
            conditions=Conditions(
                in_flight=seen.get("in_flight"),
                share_group=scenario.get("workload") == SHARE_GROUP,
                topic_unchanged=all(one.get("topic_unchanged", True) for one in (manifest, seen)),
                forbids=forbids,
            ),
            own_choices_excuse=not scenario.get("judged_as"),
            requires=requires,
            tolerates=tolerates,
            deletes=any(bool(window.get("deletes")) for window in scenario.get("schedule") or ()),
        )


@dataclass(frozen=True)
class AnomalyCount:
    """The count of an anomaly, and why it is forbidden or allowed."""

    anomaly: str
    count: int
    reason: str


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    expected: Verdict
    guarantee: Mode
    violations: tuple[AnomalyCount, ...] = ()
    counted: tuple[AnomalyCount, ...] = ()
    inconclusive: tuple[str, ...] = ()
    stalled: tuple[str, ...] = ()  # availability: reported separately, never part of the verdict
    required: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)  # counts of the required anomalies
    shortfalls: tuple[Shortfall, ...] = ()  # why the requirements are not met

    @property
    def standing(self) -> Standing:
        return standing(self.verdict, self.expected, {shortfall.kind for shortfall in self.shortfalls})

    @property
    def as_expected(self) -> bool:
        return self.standing is Standing.AS_PROMISED

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "expected": self.expected.value,
            "as_expected": self.as_expected,
            "guarantee": self.guarantee.value,
            "violations": [asdict(c) for c in self.violations],
            "counted": [asdict(c) for c in self.counted],
            "inconclusive": list(self.inconclusive),
            "stalled": list(self.stalled),
            "required": dict(self.required),
            "found": dict(self.found),
            "standing": self.standing.value,
            "shortfalls": [asdict(shortfall) for shortfall in self.shortfalls],
        }


def judge(reconciled: Mapping[str, Any], guarantee: Mode, settings: Settings) -> Judgement:
    """Return the verdict on one run under `guarantee`."""
    rules = list(_found(reconciled, guarantee, settings))
    violations = tuple(count for rule, count in rules if rule is Rule.FORBIDDEN)
    counted = tuple(count for rule, count in rules if rule is not Rule.FORBIDDEN)
    unbitten = tuple(_unbitten(reconciled["coverage"]["windows"], settings.windows))
    doubts = tuple(_doubts(reconciled, guarantee, settings))
    untested = tuple(_untested(reconciled, guarantee, settings))
    unproven = (*unbitten, *doubts, *untested)
    evidence = Evidence(
        _sums(violations), _sums(counted), reconciled["compared"], reconciled["crashed"], unbitten, doubts
    )
    wants = settings.expected, settings.requires
    return Judgement(
        verdict=_verdict(violations, unproven, whole=not reconciled["coverage"]["gaps"]),
        expected=settings.expected,
        guarantee=guarantee,
        violations=violations,
        counted=counted,
        inconclusive=unproven,
        stalled=tuple(reconciled["coverage"].get("stalled", ())),
        required=settings.requires,
        found=found(*wants, evidence),
        shortfalls=tuple(shortfalls(*wants, settings.tolerates, evidence)),
    )


def _verdict(violations: Sequence[AnomalyCount], unproven: Sequence[str], *, whole: bool) -> Verdict:
    if violations and whole:
        return Verdict.VIOLATED
    return Verdict.INCONCLUSIVE if unproven else Verdict.HELD


def _sums(counts: Iterable[AnomalyCount]) -> dict[str, int]:
    """Return one number for each anomaly, excused findings included."""
    sums: dict[str, int] = {}
    for count in counts:
        sums[count.anomaly] = sums.get(count.anomaly, 0) + count.count
    return sums


def _found(
    reconciled: Mapping[str, Any], guarantee: Mode, settings: Settings
) -> Iterator[tuple[Rule, AnomalyCount]]:
    """Yield every anomaly that was found at least once; excused findings separately."""
    for anomaly in TABLE:
        count = int(reconciled["counts"].get(anomaly, 0))
        cell = promise(anomaly, guarantee, settings.conditions)
        excused = reconciled.get("excused", {}).get(anomaly, {})
        for excuse, reason in cell.excuses.items():
            if excuse in OWN_CHOICES and not settings.own_choices_excuse:
                continue
            if n := int(excused.get(excuse, 0)):
                yield Rule.COUNTED, AnomalyCount(anomaly, n, reason)
                count -= n
        if count:
            yield cell.rule, AnomalyCount(anomaly, count, cell.reason)


def _doubts(reconciled: Mapping[str, Any], guarantee: Mode, settings: Settings) -> Iterator[str]:
    """Yield the reasons why this run may prove nothing, a line each."""
    seen = reconciled["coverage"]
    yield from seen.get("doubts", ())
    for anomaly, why in reconciled["crashed"].items():
        yield f"the finder of {anomaly} crashed: {why}"
    for window in seen["windows"]:
        if not window["healed"]:
            why = window["heal_proof"] or window["error"] or "no proof was taken"
            yield f"{_named(window)} did not heal: {why}"
    if not seen["progress_before"]:
        before = " before the fault" if settings.windows else ""
        yield f"no progress{before}: nothing was acked"
    if settings.windows and not seen["progress_after"]:
        yield "no progress after the last window: nothing was acked after healing"
    if not seen["drained"]:
        detail = seen.get("drain_detail") or "the run ended before it"
        yield f"the group was not drained to the end of the log: {detail}"
    for isolation, complete in seen["reads"].items():
        if not complete:
            yield f"the final {isolation} reading is not complete"
    yield from _doubts_about_readings(seen.get("not_asked", ()))
    yield from _doubts_about_excuses(reconciled, settings)
    unplaced = seen.get("unjudged", {}).get("unplaced")
    if unplaced and promise("lost", guarantee, settings.conditions).rule is Rule.FORBIDDEN:
        yield (
            f"{unplaced['messages']} owed messages are missing whose position is not known, in partitions whose oldest "
            f"records were deleted: they are lost or expired, and cannot be judged (the first is {unplaced['first']})"
        )
    for observer, records in seen.get("observed", {}).items():
        if not records:
            yield f"{observer} got no records: nothing was observed during the faults"
    for observer, behind in seen.get("observers_behind", {}).items():
        yield f"{observer} did not read to the end of what it observes: {behind}"
    for gap in seen["gaps"]:
        yield f"the ledger has a gap: {gap}"
    for error in seen["errors"]:
        yield f"an error during the run: {error}"


def _untested(reconciled: Mapping[str, Any], guarantee: Mode, settings: Settings) -> Iterator[str]:
    """Yield the questions of the guarantee that compared nothing in this run, a line each."""
    for anomaly, compared in reconciled["compared"].items():
        if compared == 0 and promise(anomaly, guarantee, settings.conditions).rule is Rule.FORBIDDEN:
            yield f"{anomaly} is forbidden, and nothing was there to compare: the question was not tested"


def _doubts_about_readings(not_asked: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the questions that were not asked of some partitions (E11), one line for each set of anomalies."""
    by_anomalies: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for one in not_asked:
        place = str(one["topic"]) if one["partition"] is None else f"{one['topic']}/{one['partition']}"
        by_anomalies.setdefault(tuple(one["anomalies"]), {}).setdefault(str(one["why"]), []).append(place)
    for anomalies, reasons in by_anomalies.items():
        lines = [f"{', '.join(places)}: {why}" for why, places in reasons.items()]
        more = f"; and for {len(lines) - MOST_REASONS} more reasons" if len(lines) > MOST_REASONS else ""
        verb = "was" if len(anomalies) == 1 else "were"
        yield f"{', '.join(anomalies)} {verb} not asked of {'; '.join(lines[:MOST_REASONS])}{more}"


def _doubts_about_excuses(reconciled: Mapping[str, Any], settings: Settings) -> Iterator[str]:
    """Yield the excuses that would decide the verdict (E14), a line each."""
    owed = int(reconciled["compared"].get("lost", 0))
    for excuse, meant in (("late", False), ("expired", settings.deletes)):
        count = int(reconciled["counts"].get(excuse, 0))
        violates = excuse in settings.conditions.forbids
        if not meant and not violates and count > MOST_EXCUSED * owed:
            share = f"{count / owed:.1%}" if owed else "all"
            yield (
                f"{count} of {owed} owed messages ({share}) are excused as {excuse}, more than {MOST_EXCUSED:.0%}: "
                "the rest says too little about the run"
            )


def _unbitten(windows: Sequence[Mapping[str, Any]], scheduled: int) -> Iterator[str]:
    """Yield the fault windows that did not open or did not bite, a line each."""
    if len(windows) < scheduled:
        yield f"{scheduled} fault windows were scheduled and {len(windows)} opened"
    for window in windows:
        if not window["bit"]:
            yield f"{_named(window)} did not bite: {window['proof'] or 'no proof was taken'}"


def _named(window: Mapping[str, Any]) -> str:
    return f"fault window {window['window']} ({window['fault']})"
