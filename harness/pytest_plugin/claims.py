"""Tests marked `claim`: each says whether a statement about Kafka is true, and its answer is printed and written to a page.

A test that passes says true, one that fails by an assertion says false. Anything else, such as a skip, another error or a run that
is INCONCLUSIVE, leaves the claim unproven. An answer that is not the expected one fails the test.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.pytest_plugin import settings

if TYPE_CHECKING:
    from harness.claims.claim import Claim, ClaimAnswer

MARKER = (
    'claim(id, statement, expected="true", why="", setting=""): the test says whether the statement about Kafka is true; '
    "--onceproof-claims FILE writes the answers"
)
ENDINGS = (".html", ".json")
_TEXTS = ("id", "statement", "expected", "why", "setting")
_ANSWER = "claim_answer"  # a property of the report: it reaches the main process of pytest-xdist too
_STATED = pytest.StashKey[dict[str, str]]()


def check(items: Sequence[pytest.Item], config: pytest.Config) -> None:
    """Read the markers; raise pytest.UsageError, in one line, for a wrong one or a wrong file for the answers."""
    given = settings.value(config, "claims")
    if given is not None and not str(given).endswith(ENDINGS):
        raise pytest.UsageError(
            f"{settings.flag('claims')} {given}: the file ends with {' or '.join(ENDINGS)}"
        )
    known: dict[str, dict[str, str]] = {}
    for item in items:
        if (marker := item.get_closest_marker("claim")) is None:
            continue
        texts = _texts(marker, item.nodeid)
        if known.setdefault(texts["id"], texts) != texts:
            raise pytest.UsageError(
                f"{item.nodeid}: claim {texts['id']} exists twice; give one of the two another id"
            )
        item.stash[_STATED] = texts


def _texts(marker: pytest.Mark, test: str) -> dict[str, str]:
    place = f"{test}: claim"
    if marker.args:
        raise pytest.UsageError(f'{place}: name the arguments, as in claim(id="TEAM-1", statement="…")')
    if unknown := sorted(marker.kwargs.keys() - set(_TEXTS)):
        raise pytest.UsageError(f"{place}: {unknown[0]}: unknown; available: {', '.join(_TEXTS)}")
    texts = {"expected": "true", "why": "", "setting": "", **marker.kwargs}
    for name in _TEXTS:
        if not isinstance(texts.get(name), str) or (name in ("id", "statement") and not texts[name].strip()):
            raise pytest.UsageError(f"{place}: {name}: a text is expected")
    if texts["expected"] not in ("true", "false"):
        raise pytest.UsageError(f"{place}: expected: true or false, as a text, not {texts['expected']!r:.80}")
    return texts


def answer(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Turn the outcome of a claim's test into its answer; an answer that is not the expected one fails the test."""
    texts = item.stash.get(_STATED, None)
    if texts is None or (report.when != "call" and report.passed) or report.when == "teardown":
        return
    holds, why = _holds(call, report, item)
    if holds is not None and str(holds).lower() == texts["expected"]:
        report.outcome, report.longrepr = "passed", None
    elif not (report.skipped or (report.failed and holds is not False)):
        report.longrepr = f"claim {texts['id']}: {_word(holds)}, expected: {texts['expected']}; {why}\n{report.longrepr or ''}"
        report.outcome = "failed"
    observed = {
        **texts,
        "holds": holds,
        "situation": item.name,
        "numbers": why,
        "run": _last(item, "run_dir"),
    }
    item.user_properties.extend(
        [("claim", texts["id"]), (_ANSWER, json.dumps({**observed, "seconds": report.duration}))]
    )
    report.user_properties = list(item.user_properties)


def _holds(
    call: pytest.CallInfo[None], report: pytest.TestReport, item: pytest.Item
) -> tuple[bool | None, str]:
    """Return whether the statement holds, None if nothing is proven, and the numbers or the reason."""
    verdicts = [str(value) for name, value in item.user_properties if name == "verdict"]
    numbers = ", ".join(
        [
            *verdicts[-1:],
            *(f"{_last(item, name)} {name}" for name in ("acked", "lost", "duplicated") if verdicts),
        ]
    )
    if "INCONCLUSIVE" in verdicts:
        return None, "a run is INCONCLUSIVE"
    if report.passed:
        return True, numbers or "the test passed"
    error = call.excinfo
    if (
        report.when == "call"
        and error is not None
        and error.errisinstance((AssertionError, pytest.fail.Exception))
    ):
        return False, numbers or error.exconly().splitlines()[0]
    return None, "not checked" if error is None else error.exconly().splitlines()[0]


def _last(item: pytest.Item, name: str) -> str:
    return next((str(value) for known, value in reversed(item.user_properties) if known == name), "")


def _word(holds: bool | None) -> str:
    return "unproven" if holds is None else str(holds).lower()


def summary(reports: Iterable[pytest.TestReport], config: pytest.Config) -> Iterator[str]:
    """Yield the answers as lines, and write them to the file that the session names."""
    answers = _answers(reports)
    for each in answers:
        mark = "as expected" if each.as_expected else f"EXPECTED {each.claim.expected_text}"
        yield f"{each.claim.id}: {each.claim.statement} {each.text.upper()} ({mark})"
    if answers and (path := settings.value(config, "claims")) is not None:
        yield f"claims: {_write(Path(path), answers)}"


def _answers(reports: Iterable[pytest.TestReport]) -> list[ClaimAnswer]:
    """Return one answer for each claim: the tests with its id, such as those of a parametrized one, are its observations."""
    from harness.claims.claim import ClaimAnswer, Measurements, Observation, truth_of

    found: dict[str, list[dict[str, Any]]] = {}
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):  # a file that was not collected has none
            if name == _ANSWER and report.when != "teardown":
                data = json.loads(str(value))
                found.setdefault(data["id"], []).append(data)
    answers = []
    for rows in found.values():
        seen = tuple(
            Observation(r["situation"], r["holds"], r["numbers"], run=Path(r["run"]) if r["run"] else None)
            for r in rows
        )
        seconds = sum(float(r["seconds"]) for r in rows)
        answers.append(ClaimAnswer(_claim(rows[0]), truth_of(seen), Measurements(seen), seconds))
    return answers


def _claim(row: dict[str, Any]) -> Claim:
    from harness.claims.claim import Claim, Measurements, Truth

    return Claim(
        id=row["id"], statement=row["statement"], expected=Truth(row["expected"]), why=row["why"], setting=row["setting"],
        case=lambda bench: Measurements.of(),
    )  # fmt: skip


def _write(path: Path, answers: Sequence[ClaimAnswer]) -> Path:
    from harness.claims.answers import as_data

    data = as_data(answers)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(data) + "\n", encoding="utf-8")
        return path
    from harness.provision.versions import versions
    from reports.claims_page import write

    return write(path, data, versions(), time.strftime("%Y-%m-%d"))
