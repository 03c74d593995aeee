"""JUnit files: one test case per run, with its seed, its folder and its counts as properties.

A violated promise and a missed control are failures, a run that proves nothing or cannot be read is an error, and a scenario
that could not be run here is skipped. Texts of any origin are safe: XML has no place for control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from harness.runtime.terminal import printable
from reports.course import COMPLETE, Course
from reports.model import RunReport, Standing
from reports.summary import COUNTS

PASSED, FAILURE, ERROR, SKIPPED = "passed", "failure", "error", "skipped"
_OUTCOMES = {
    Standing.AS_PROMISED: PASSED,
    Standing.BROKEN: FAILURE,
    Standing.MISSED: FAILURE,
    Standing.UNREADABLE: ERROR,
    Standing.UNPROVEN: ERROR,
}
_MOST_FINDINGS = 10
_NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")  # besides what `printable` escapes


@dataclass(frozen=True)
class Case:
    """One test case; `message` is one line, `lines` is the text below it."""

    name: str
    group: str
    outcome: str = PASSED
    kind: str = ""  # of a failure or an error
    message: str = ""
    lines: Sequence[str] = ()
    seconds: float = 0.0
    properties: Mapping[str, object] = field(default_factory=dict)


def cases(runs: Iterable[RunReport], course: Course) -> list[Case]:
    """Return the runs, the skipped scenarios, and what ended the command early."""
    found = [_of_run(run, course.seconds.get(run.scenario, 0.0)) for run in runs]
    found += [
        Case(name, "onceproof.skipped", SKIPPED, message=why) for name, why in sorted(course.skipped.items())
    ]
    if course.ended != COMPLETE:
        found.append(Case("the command", "onceproof", ERROR, course.ended, course.ended, course.errors))
    return found


def document(title: str, started: str, found: Sequence[Case]) -> bytes:
    """Return the file: one suite with these cases."""
    outcomes = [case.outcome for case in found]
    numbers = {
        "tests": str(len(found)),
        "failures": str(outcomes.count(FAILURE)),
        "errors": str(outcomes.count(ERROR)),
        "skipped": str(outcomes.count(SKIPPED)),
        "time": _seconds(sum(case.seconds for case in found)),
    }
    root = ElementTree.Element("testsuites", {"name": _clean(title), **numbers})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": _clean(title), **numbers, "timestamp": _clean(started)}
    )
    for case in found:
        _add(suite, case)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def write(file: Path, content: bytes) -> None:
    """Write the file, whole or not at all."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_bytes(content)
    draft.replace(file)


def _of_run(run: RunReport, seconds: float) -> Case:
    """Return the case of a run."""
    reasons = reasons_of(run)
    outcome = _OUTCOMES[run.standing]
    findings = [finding.text for finding in run.findings[:_MOST_FINDINGS]]
    again = [f"repeat: {run.command}"] if run.command else []
    return Case(
        run.scenario,
        f"onceproof.{run.judged_as or 'unknown'}",
        outcome,
        run.verdict,
        f"{run.standing}: {'; '.join(reasons) or run.verdict}",
        () if outcome == PASSED else (*reasons, *findings, *again),
        seconds,
        {
            "seed": "" if run.seed is None else run.seed,
            "run_dir": run.path,
            "verdict": run.verdict,
            "expected": run.expected,
            "fault": run.fault,
            **{name: run.count(name) for name in COUNTS if run.count(name) is not None},
        },
    )


def reasons_of(run: RunReport) -> list[str]:
    """Return why the run is not as promised, one line each."""
    if run.standing is Standing.AS_PROMISED:
        return []
    if run.error:
        return [run.error]
    violated = [f"{each.anomaly} x {each.count}: {each.reason}" for each in run.violations]
    return [*violated, *run.requirement.reasons, *run.inconclusive]


def _add(suite: ElementTree.Element, case: Case) -> None:
    names = {"classname": _clean(case.group), "name": _clean(case.name), "time": _seconds(case.seconds)}
    made = ElementTree.SubElement(suite, "testcase", names)
    if case.properties:
        properties = ElementTree.SubElement(made, "properties")
        for name, value in case.properties.items():
            ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})
    if case.outcome in (FAILURE, ERROR):
        kind = {"type": _clean(case.kind), "message": _clean(case.message)}
        ElementTree.SubElement(made, case.outcome, kind).text = "\n".join(map(_clean, case.lines))
    elif case.outcome == SKIPPED:
        ElementTree.SubElement(made, SKIPPED, {"message": _clean(case.message)})


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: object) -> str:
    """Return the text on one line, with what XML cannot contain escaped."""
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", printable(text))
