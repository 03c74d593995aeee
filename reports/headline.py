"""The headline: one sentence about what a set of runs proves, first on the page and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reports.many.compared import Compared, compared
from reports.model import INCONCLUSIVE, Report, RunReport, Standing
from reports.words import number, plural

MARKS = {  # a verdict is never shown by colour alone
    Standing.AS_PROMISED: "\u2713",
    Standing.BROKEN: "\u2717",
    Standing.MISSED: "\u2717",
    Standing.UNREADABLE: "?",
    Standing.UNPROVEN: "?",
}
BAD_NEWS = (Standing.BROKEN, Standing.MISSED, Standing.UNREADABLE, Standing.UNPROVEN)  # worst first
TONES = {
    Standing.AS_PROMISED: "good",
    Standing.BROKEN: "bad",
    Standing.MISSED: "bad",
    Standing.UNREADABLE: "unsure",
    Standing.UNPROVEN: "unsure",
}


@dataclass(frozen=True)
class Headline:
    sentence: str
    beneath: str
    tone: str  # good, bad, unsure
    mark: str


def headline(runs: Sequence[RunReport]) -> Headline:
    """Return the headline. Bad news outweighs good news: a violated promise, a blind control, a run without proof."""
    promises = [r for r in runs if not r.control]
    controls = [r for r in runs if r.control]
    standing = worst(runs)
    if not runs:
        return Headline("Nothing was proven", "There are no runs.", "unsure", "?")
    if standing is Standing.BROKEN:
        broken = sum(r.standing is Standing.BROKEN for r in runs)
        sentence = "A promise was violated" if broken == 1 else f"{number(broken)} promises were violated"
    elif standing is Standing.MISSED:
        missed = [r for r in runs if r.standing is Standing.MISSED]
        what = "control" if all(r.control for r in missed) else "run"
        sentence = f"{plural(len(missed), what)} did not catch what was planted"
    elif standing is Standing.UNREADABLE:
        sentence = f"{plural(sum(r.standing is Standing.UNREADABLE for r in runs), 'run')} could not be read"
    elif all(r.verdict == INCONCLUSIVE for r in runs):
        sentence = "Nothing was proven"
    elif standing is Standing.UNPROVEN:
        sentence = f"{plural(sum(r.standing is Standing.UNPROVEN for r in runs), 'run')} proved nothing"
        sentence += ", the others are as promised"
    elif not promises:
        sentence = (
            "The control is as it has to be" if len(controls) == 1 else "All controls are as they have to be"
        )
    else:
        sentence = "The promise held" if len(promises) == 1 else f"All {number(len(promises))} promises held"
    return Headline(sentence, _beneath(promises, controls, standing), TONES[standing], MARKS[standing])


def headline_of(report: Report) -> Headline:
    """Return the headline of a page. A night that did not find its canary proves nothing, whatever its runs say."""
    found, night = headline(report.runs), report.night
    if report.comparison is not None:
        return _of_comparison(compared(*report.comparison.sides(report.runs)), found)
    if night is None:
        return found
    beneath = f"{found.beneath} {night.canary_sentence}"
    if night.canary_found:
        return replace(found, beneath=beneath)
    sentence = "The canary was not found: this night proves nothing"
    return Headline(sentence, beneath, TONES[Standing.MISSED], MARKS[Standing.MISSED])


def _of_comparison(found: Compared, of_runs: Headline) -> Headline:
    names = list(found.differences)
    if not found.kinds:
        sentence, tone, mark = "A and B have no kind of run in common", "unsure", "?"
    elif names:
        sentence, tone, mark = "A and B differ beyond noise", "unsure", "\u2260"
    else:
        sentence, tone, mark = "No difference beyond noise between A and B", "good", "="
    differ = f"They differ in {_listed(names)}. " if names else ""
    of_both = f"{differ}{of_runs.sentence} (both sets together). {of_runs.beneath}"
    return Headline(sentence, of_both, tone if of_runs.tone == "good" else of_runs.tone, mark)


def _listed(names: Sequence[str]) -> str:
    """Return up to three names, and the number of the others."""
    shown = [*names[:3], *([f"{len(names) - 3} more"] if len(names) > 3 else [])]
    return " and ".join([*([", ".join(shown[:-1])] if len(shown) > 1 else []), shown[-1]])


def worst(runs: Sequence[RunReport]) -> Standing:
    found = {r.standing for r in runs}
    return next((s for s in BAD_NEWS if s in found), Standing.AS_PROMISED)


def _beneath(promises: Sequence[RunReport], controls: Sequence[RunReport], standing: Standing) -> str:
    def fine(runs: Sequence[RunReport]) -> str:
        return f"{number(sum(r.standing is Standing.AS_PROMISED for r in runs))} of {number(len(runs))}"

    parts = []
    if promises:
        parts.append(f"{fine(promises)} {_of(promises, 'promise')} held while things were breaking.")
    if controls:
        parts.append(f"{fine(controls)} {_of(controls, 'control')} came out as required.")
    if standing is Standing.MISSED:
        parts.append("As long as a control is blind, the runs that held prove less than they seem to.")
    if standing is Standing.UNPROVEN:
        parts.append("A run proves nothing when it could not have shown a violation; the reasons are below.")
    return " ".join(parts)


def _of(runs: Sequence[RunReport], word: str) -> str:
    return word if len(runs) == 1 else f"{word}s"
