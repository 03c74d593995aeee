"""The runs of hazards in pairs: the unsafe run, which has to show an anomaly, and the safe one, which has to be HELD."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from reports import words
from reports.files import mapping, text
from reports.model import HELD, RunReport, Standing

FALSE_ALARMS = "false alarms"  # the class of hazards without an unsafe run


@dataclass(frozen=True)
class HazardRuns:
    """One hazard: its texts, its unsafe run and its safe run. Runs are None if they did not take place."""

    name: str
    about: Mapping[str, str] = field(default_factory=dict)  # title, class, at_risk, cure
    unsafe: RunReport | None = None
    safe: RunReport | None = None

    @property
    def is_false_alarm(self) -> bool:
        return self.about.get("class") == FALSE_ALARMS

    @property
    def caught(self) -> bool:
        """True if the unsafe run shows what it has to show, and nothing else that is forbidden."""
        return self.unsafe is not None and self.unsafe.standing is Standing.AS_PROMISED

    @property
    def held(self) -> bool:
        return self.safe is not None and self.safe.standing is Standing.AS_PROMISED

    @property
    def standing(self) -> Standing:
        """The worse one of the two runs; a run that did not take place proves nothing."""
        order = (Standing.BROKEN, Standing.MISSED, Standing.UNREADABLE, Standing.UNPROVEN)
        found = {run.standing for run in (self.unsafe, self.safe) if run is not None}
        if self.safe is None or (self.unsafe is None and not self.is_false_alarm):
            found.add(Standing.UNPROVEN)
        return next((each for each in order if each in found), Standing.AS_PROMISED)

    def sentences(self) -> Iterator[str]:
        """Yield what happened in the two runs, with numbers, who is at risk, and the cure."""
        if self.unsafe is not None:
            yield f"{'Caught' if self.caught else 'Not caught'}: {_flow(self.unsafe)}{_found(self.unsafe)}"
            if self.unsafe.bite:
                yield f"Faults: {self.unsafe.bite}."
        if self.safe is not None:
            way = "Looks like an anomaly and is none" if self.is_false_alarm else "Safe way"
            yield f"{way}: {self.safe.verdict}; {_flow(self.safe)}{_found(self.safe)}"
        if at_risk := self.about.get("at_risk"):
            yield f"At risk: {at_risk.removesuffix('.')}."
        if cure := self.about.get("cure"):
            yield f"Cure: {cure}"


def hazard_runs(runs: Sequence[RunReport]) -> list[HazardRuns]:
    """Return the hazards of these runs in the order of their first runs; the nth unsafe run is paired with the nth safe one.

    Only runs whose manifests have texts about a hazard belong to one.
    """
    by_name: dict[str, list[RunReport]] = defaultdict(list)
    for run in runs:
        if belongs_to_hazard(run):
            by_name[run.hazard].append(run)
    found = []
    for name, members in by_name.items():
        pairs = zip_longest(
            [run for run in members if run.expected != HELD], [run for run in members if run.expected == HELD]
        )
        about = about_hazard(members[0])
        found += [HazardRuns(name, about, unsafe, safe) for unsafe, safe in pairs]
    return found


def belongs_to_hazard(run: RunReport) -> bool:
    return bool(run.hazard and about_hazard(run))


def about_hazard(run: RunReport) -> dict[str, str]:
    """Return the texts of a run's manifest about its hazard; empty if it has none."""
    about = mapping(run.settings, "about")
    return {name: text(about, name) for name in ("title", "class", "at_risk", "cure")} if about else {}


def required(run: RunReport) -> str:
    """Return `lost >= 1`: the anomalies that a run has to show."""
    return ", ".join(f"{name} >= {words.number(n)}" for name, n in run.requirement.required.items())


def found(run: RunReport) -> str:
    """Return `lost 48`: how often it showed them."""
    counts = run.requirement.found
    return ", ".join(f"{name} {words.number(counts.get(name, 0))}" for name in run.requirement.required)


def _flow(run: RunReport) -> str:
    attempted, acked = run.count("attempted"), run.count("acked")
    if attempted is None or acked is None:
        return ""
    verb = "was" if attempted == 1 else "were"
    return f"{words.number(acked)} of {words.plural(attempted, 'message')} {verb} acknowledged; "


def _found(run: RunReport) -> str:
    if run.standing is not Standing.AS_PROMISED:
        reasons = (*run.requirement.reasons, *run.inconclusive) or tuple(v.reason for v in run.violations)
        shown = "; ".join([_violations(run), *dict.fromkeys(reasons)] if run.violations else reasons)
        return f"{shown or 'no reason was written'}."
    return f"found: {_violations(run)}." if run.violations else "nothing forbidden was found."


def _violations(run: RunReport) -> str:
    return "; ".join(
        f"{words.words(v.anomaly)} {words.number(v.count)} ({words.MEANINGS.get(v.anomaly, v.reason)})"
        for v in run.violations
    )
