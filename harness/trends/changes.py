"""Which rates and times changed beyond noise. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from harness.statistics.comparisons import adjusted
from harness.statistics.proportions import proportion_test
from harness.statistics.rank_test import Stratum, rank_test
from harness.trends.groups import GroupHistory
from harness.trends.row import Row, fault_text

LEVEL = 0.01  # if nothing changed, one night of a hundred reports a change
RATE = "rate"
_LEAST = 5  # values on each side: with fewer the normal approximation is wrong, and no difference could be beyond noise
_UNITS = {
    "recovery_s": "s",
    "unavailable_s": "s",
    "latency_p50_ms": "ms",
    "latency_p99_ms": "ms",
    "throughput_per_s": "/s",
}
_NAMES = {
    "recovery_s": "recovery",
    "unavailable_s": "longest unavailability",
    "latency_p50_ms": "median latency",
    "latency_p99_ms": "latency (99 %)",
    "throughput_per_s": "throughput",
}
EVERYTHING = "all faults and modes"


@dataclass(frozen=True)
class Change:
    """A number that changed beyond noise."""

    what: str  # "rate", or the name of a column: "recovery_s", "throughput_per_s" …
    of: str  # the group, or the fault and the mode
    before: float  # a share from 0 to 1, or a median
    tonight: float
    text: str  # one line for people
    p: float  # corrected for the number of comparisons


_Pairs = Sequence[tuple[Sequence[Row], Sequence[Row]]]  # runs before and now that are alike
_Comparison = tuple[float, Callable[[float], Change]]  # p value, and the change with a corrected one


def changes_of(
    histories: Iterable[GroupHistory], tonight: Sequence[Row], before: Sequence[Row]
) -> tuple[tuple[Change, ...], int]:
    """Return what changed, the surest first, and the number of comparisons without a change."""
    compared = [*_rates(histories), *_times(tonight, before)]
    corrected = adjusted([p for p, _ in compared])
    changed = [change(p) for p, (_, change) in zip(corrected, compared, strict=True) if p < LEVEL]
    return tuple(sorted(changed, key=lambda each: each.p)), len(compared) - len(changed)


def _rates(histories: Iterable[GroupHistory]) -> Iterator[_Comparison]:
    """Compare the rates of each group that both sides asked for."""
    for each in histories:
        if each.before.runs and each.tonight.runs:
            yield proportion_test(each.before, each.tonight), partial(_rate_change, each)


def _rate_change(each: GroupHistory, p: float) -> Change:
    text = f"{each.group}: {each.before} before, {each.tonight} now"
    return Change(RATE, str(each.group), each.before.share or 0.0, each.tonight.share or 0.0, text, p)


def _times(tonight: Sequence[Row], before: Sequence[Row]) -> Iterator[_Comparison]:
    """Compare each number by fault and mode, and over all of them."""
    now, then = _by_cell(tonight), _by_cell(before)
    cells = sorted(now.keys() & then.keys())
    by_name: dict[str, list[_Cell]] = defaultdict(list)
    for cell in cells:
        by_name[f"fault {cell[0]}, {cell[1]}"].append(cell)
    sets = {EVERYTHING: cells, **by_name} if len(by_name) > 1 else by_name
    for what in _UNITS:
        for name, members in sets.items():
            runs = [(then[cell], now[cell]) for cell in members]
            strata = [each for each in _strata(what, runs) if each[0] and each[1]]
            enough = all(sum(len(each[side]) for each in strata) >= _LEAST for side in (0, 1))
            if enough and (test := rank_test(strata)):
                yield test.p, partial(_time_change, what, name, runs, test.higher)


def _time_change(what: str, of: str, runs: _Pairs, share_higher: float, p: float) -> Change:
    strata = [each for each in _strata(what, runs) if each[0] and each[1]]
    before, now = ([value for each in strata for value in each[side]] for side in (0, 1))
    first, second, unit = median(before), median(now), _UNITS[what]
    higher = share_higher > 0.5
    alike, sessions = _sessions(what, runs, higher)
    text = (
        f"{_NAMES[what]}, {of}: median {first:.4g} {unit} before ({len(before)} runs), {second:.4g} {unit} now ({len(now)}); "
        f"{'higher' if higher else 'lower'} in {max(share_higher, 1 - share_higher):.0%} of pairs of runs, "
        f"and against {alike} of {sessions} sessions"
    )
    return Change(what, of, first, second, text, p)


def _sessions(what: str, runs: _Pairs, higher: bool) -> tuple[int, int]:
    """Return against how many single sessions the difference has this direction, and how many have values at all.

    The test knows the noise between runs. Whole nights differ as well, by what else the machine does.
    """
    names = {row.session for before, _ in runs for row in before}
    alone = [[([row for row in b if row.session == name], now) for b, now in runs] for name in names]
    tests = [test for each in alone if (test := rank_test(_strata(what, each)))]
    return sum(test.higher != 0.5 and (test.higher > 0.5) == higher for test in tests), len(tests)


def _strata(what: str, runs: _Pairs) -> list[Stratum]:
    return [(_values(before, what), _values(now, what)) for before, now in runs]


_Cell = tuple[str, str, str]  # fault, mode, workload: only runs that are alike in these are compared


def _by_cell(rows: Iterable[Row]) -> Mapping[_Cell, list[Row]]:
    """Return the runs that prove something, without canaries."""
    found: dict[_Cell, list[Row]] = defaultdict(list)
    for row in rows:
        if row.conclusive and not row.canary:
            found[fault_text(row.faults), row.judged_as, row.workload].append(row)
    return found


def _values(rows: Iterable[Row], what: str) -> list[float]:
    """Return one value for each run: windows of one run are not independent of each other."""
    if what == "recovery_s":
        return [median(row.recovery_s) for row in rows if row.recovery_s]
    return [value for row in rows if (value := getattr(row, what)) is not None]
