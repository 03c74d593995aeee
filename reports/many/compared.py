"""Two sets of runs side by side: verdicts, anomalies and times by kind of scenario, and which of them differ beyond noise. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from harness.statistics.comparisons import adjusted
from harness.statistics.proportions import proportion_test
from harness.statistics.rank_test import rank_test
from harness.statistics.rates import Rate
from harness.trends.changes import LEVEL
from harness.trends.row import fault_text
from reports import words
from reports.many.exercised import faults_of
from reports.model import HELD, INCONCLUSIVE, VIOLATED, RunReport

LEAST = 5  # values on each side: with fewer the rank test is too rough, and nothing could be beyond noise
ALL = "all runs"
Runs = Sequence[RunReport]
Key = tuple[str, str]  # mode and faults: a kind of scenario


@dataclass(frozen=True)
class Measure:
    """One number of both sets. `p` is None if they cannot be compared; `differs`: beyond noise."""

    name: str
    first: str
    second: str
    values: tuple[float | None, float | None]  # shares from 0 to 1, or medians in s, ms or per second
    of: tuple[int, int]  # runs, or values of a median
    p: float | None = None
    higher: bool = False  # the second one
    differs: bool = False


@dataclass(frozen=True)
class Kind:
    """The runs of both sets that are alike: all, those of a mode, or those of a mode with the same faults."""

    name: str
    mode: str  # "" for all
    faults: str  # "" for all
    runs: tuple[int, int]
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Compared:
    """The kinds that both sets have, and the names of those that only one has. Controls and unreadable runs are left out."""

    total: Kind
    modes: tuple[Kind, ...]
    kinds: tuple[Kind, ...]
    anomalies: tuple[Measure, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Every measure with its kind: those of all runs first, then by mode, then by mode and faults."""
        yield from ((ALL, each) for each in (*self.total.measures, *self.anomalies))
        yield from ((kind.name, each) for kind in (*self.modes, *self.kinds) for each in kind.measures)

    @property
    def differences(self) -> dict[str, list[tuple[str, Measure]]]:
        """The measures that differ beyond noise, by name, with the kinds in which they do."""
        found: dict[str, list[tuple[str, Measure]]] = defaultdict(list)
        for kind, measure in self.measures:
            if measure.differs:
                found[measure.name].append((kind, measure))
        return dict(found)

    @property
    def comparisons(self) -> int:
        return sum(each.p is not None for _, each in self.measures)


def compared(first: Runs, second: Runs) -> Compared:
    """Compare the runs of two sets, kind by kind; p values are corrected for the number of comparisons."""
    sides = _by_kind(first), _by_kind(second)
    both = sorted(sides[0].keys() & sides[1].keys(), key=_order)
    modes = dict.fromkeys(mode for mode, _ in both)
    pick = partial(_kind, sides)
    found = Compared(
        pick(ALL, "", "", both),
        tuple(pick(words.mode(each), each, "", [key for key in both if key[0] == each]) for each in modes),
        tuple(pick(_name(key), *key, [key]) for key in both),
        tuple(_anomalies(*(_flat(side, both) for side in sides))),
        (_names(sides[0].keys() - sides[1].keys()), _names(sides[1].keys() - sides[0].keys())),
    )
    return _marked(found)


def _marked(found: Compared) -> Compared:
    """Mark what differs beyond noise, over all comparisons of the page."""
    values = iter(adjusted([each.p for _, each in found.measures if each.p is not None]))

    def marked(measures: Iterable[Measure]) -> tuple[Measure, ...]:
        return tuple(
            each if each.p is None else replace(each, p=(p := next(values)), differs=p < LEVEL)
            for each in measures
        )

    def kind(each: Kind) -> Kind:
        return replace(each, measures=marked(each.measures))

    total, anomalies = kind(found.total), marked(found.anomalies)  # in the order of `measures`
    modes, kinds = tuple(map(kind, found.modes)), tuple(map(kind, found.kinds))
    return replace(found, total=total, anomalies=anomalies, modes=modes, kinds=kinds)


def _kind(
    sides: tuple[Mapping[Key, Runs], Mapping[Key, Runs]],
    name: str,
    mode: str,
    faults: str,
    keys: Sequence[Key],
) -> Kind:
    first, second = (_flat(side, keys) for side in sides)
    strata = [(sides[0][key], sides[1][key]) for key in keys]
    return Kind(name, mode, faults, (len(first), len(second)), (
        _held(first, second),
        _rate("violated", _violated(first), _violated(second)),
        _rate("proved nothing", _unproven(first), _unproven(second)),
        _times("recovery", strata, _recovery, words.seconds),
        _times("longest unavailable", strata, lambda run: _one(run.unavailable_s_max), words.seconds),
        _times("acked per second", strata, lambda run: _one(run.throughput_per_s), words.short_number),
        _times("latency p99", strata, lambda run: _one(run.latency_ms.get("p99")), words.milliseconds),
    ))  # fmt: skip


def _times(
    name: str,
    strata: Sequence[tuple[Runs, Runs]],
    values: Callable[[RunReport], Sequence[float]],
    shown: Callable[[float], str],
) -> Measure:
    """Compare values within each kind only: a set with more of a slow fault is not slower."""
    pairs = [
        ([v for run in one for v in values(run)], [v for run in other for v in values(run)])
        for one, other in strata
    ]
    first, second = ([value for pair in pairs for value in pair[side]] for side in (0, 1))
    middles = [median(each) if each else None for each in (first, second)]
    before, after = (words.NOTHING if each is None else shown(each) for each in middles)
    test = rank_test(pairs) if min(len(first), len(second)) >= LEAST else None
    return Measure(
        name, before, after, (middles[0], middles[1]), (len(first), len(second)), test.p if test else None,
        test is not None and test.higher > 0.5,
    )  # fmt: skip


def _rate(name: str, first: Rate, second: Rate) -> Measure:
    p = proportion_test(first, second) if first.runs and second.runs else None
    one, other = (f"{each.found} of {each.runs}" if each.runs else words.NOTHING for each in (first, second))
    higher = (second.share or 0.0) > (first.share or 0.0)
    return Measure(name, one, other, (first.share, second.share), (first.runs, second.runs), p, higher)


def _held(first: Runs, second: Runs) -> Measure:
    """Count what held. It is not tested: it follows from the other two verdicts."""
    counts = [sum(run.verdict == HELD for run in side) for side in (first, second)]
    plain = _rate("held", Rate(counts[0], len(first)), Rate(counts[1], len(second)))
    return replace(plain, first=words.number(counts[0]), second=words.number(counts[1]), p=None)


def _anomalies(first: Runs, second: Runs) -> Iterator[Measure]:
    """Yield the rates of runs that show each anomaly, allowed or forbidden, among those in which it was looked for."""
    names = {name for run in (*first, *second) for name in run.compared if run.count(name)}
    for name in sorted(names):
        rates = []
        for side in (first, second):
            looked = [run for run in side if name in run.compared and run.verdict != INCONCLUSIVE]
            rates.append(Rate(sum(bool(run.count(name)) for run in looked), len(looked)))
        plain = _rate(words.words(name), *rates)
        yield replace(plain, first=str(rates[0]), second=str(rates[1]))


def _by_kind(runs: Runs) -> dict[Key, list[RunReport]]:
    found: dict[Key, list[RunReport]] = defaultdict(list)
    for run in runs:
        if not run.control and not run.error:
            found[run.mode, fault_text(faults_of(run))].append(run)
    return dict(found)


def _flat(side: Mapping[Key, Runs], keys: Iterable[Key]) -> list[RunReport]:
    return [run for key in keys for run in side[key]]


def _violated(runs: Runs) -> Rate:
    conclusive = [run for run in runs if run.verdict != INCONCLUSIVE]
    return Rate(sum(run.verdict == VIOLATED for run in conclusive), len(conclusive))


def _unproven(runs: Runs) -> Rate:
    return Rate(sum(run.verdict == INCONCLUSIVE for run in runs), len(runs))


def _recovery(run: RunReport) -> list[float]:
    return [window.recovered_s for window in run.windows if window.recovered_s is not None]


def _one(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _order(key: Key) -> tuple[int, str, str]:
    return (words.MODES.index(key[0]) if key[0] in words.MODES else len(words.MODES), *key)


def _name(key: Key) -> str:
    return f"{words.mode(key[0])}, {words.fault(key[1])}"


def _names(keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(_name(key) for key in sorted(keys, key=_order))
