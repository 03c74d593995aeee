"""Claims of a team, from a TOML file: a statement, a scenario and the expected answer (docs/claims.md)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.claims.bench import Bench
from harness.claims.claim import Claim, ClusterNeeds, Measurements, Truth
from harness.cluster_options import by_byteman
from harness.clusters.base.options import Options
from harness.contracts import Mode, Verdict
from harness.errors import UsageError
from harness.running.scenario_data import scenario_of
from harness.scenario import Scenario

_KEYS = frozenset({"id", "statement", "expected", "why", "setting", "holds_when", "scenario"})
_ID = re.compile(r"[A-Z][A-Z0-9]*-[A-Z0-9]+")
_ANSWERS = {str(truth): truth for truth in (Truth.TRUE, Truth.FALSE)}


def read(path: Path) -> list[Claim]:
    """Return the claims of the file; raise UsageError, in one line, for a file that has none or wrong ones."""
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    tables = data.get("claim")
    if not isinstance(tables, list) or not tables or len(data) > 1:
        raise UsageError(f"{path}: a file of claims has one or more tables [[claim]], and nothing else")
    return [_claim(table, f"{path}: claim[{number}]") for number, table in enumerate(tables, 1)]


def _claim(table: Any, place: str) -> Claim:
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: a table is expected")
    if unknown := sorted(table.keys() - _KEYS):
        raise UsageError(f"{place}.{unknown[0]}: unknown; available: {', '.join(sorted(_KEYS))}")
    for name in ("id", "statement", "expected"):
        if not isinstance(table.get(name), str) or not table[name].strip():
            raise UsageError(f"{place}.{name}: a text is expected")
    if not _ID.fullmatch(table["id"]):
        raise UsageError(
            f"{place}.id: capitals, a hyphen and a number, such as TEAM-1, not {table['id']!r:.80}"
        )
    if table["expected"] not in _ANSWERS:
        raise UsageError(f"{place}.expected: true or false, as a text, not {table['expected']!r:.80}")
    holds_when = table.get("holds_when", "held")
    if holds_when not in ("held", "violated"):
        raise UsageError(f"{place}.holds_when: held or violated, not {holds_when!r:.80}")
    if not isinstance(table.get("scenario"), Mapping):
        raise UsageError(f"{place}.scenario: missing; give a table [claim.scenario] with at least `mode`")
    scenario = _scenario(table, holds_when, place)
    options = Options(byteman=by_byteman([scenario]))
    return Claim(
        id=table["id"],
        statement=table["statement"],
        expected=_ANSWERS[table["expected"]],
        why=str(table.get("why", "")),
        setting=str(table.get("setting", "")),
        case=_Case(scenario, Verdict(holds_when.upper())),
        clusters=(ClusterNeeds(options=options),),
    )


def _scenario(table: Mapping[str, Any], holds_when: str, place: str) -> Scenario:
    """Return the scenario; its name and the expected verdict follow from the claim."""
    given = dict(table["scenario"])
    must_be = Verdict.VIOLATED if holds_when == "violated" else Verdict.HELD
    given = {"name": f"claim-{table['id'].lower()}", "expected": must_be.value, **given}
    if must_be is Verdict.VIOLATED:
        given.setdefault("control", True)
    given.setdefault("mode", Mode.AT_LEAST_ONCE.value)
    return scenario_of(given, f"{place}.scenario")


class _Case:
    """Runs the scenario of the file: the statement holds if the verdict is the wanted one."""

    def __init__(self, scenario: Scenario, holds_if: Verdict) -> None:
        self._scenario, self._holds_if = scenario, holds_if

    def __call__(self, bench: Bench) -> Measurements:
        return Measurements.of(bench.observed(self._scenario, "as stated", holds_if=self._holds_if))
