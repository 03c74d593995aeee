"""The fault family as data, told by the faults themselves: what `./onceproof faults` prints and docs/faults.md says."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness import registry

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "faults" / "measured.json"  # written by `pytest suites/test_faults.py --record-effects`
DOCUMENT = ROOT / "docs" / "faults.md"

_HEAD = """# Faults

Made by `./onceproof faults --markdown` from the files in `faults/`; a test fails when it is not up to date.

A fault is held on nodes that a target picks, for as long as a schedule says. While it is held it measures its own bite, after
healing it measures that nothing is left; both are in the ledger and in the report. A run in which no fault bit is
INCONCLUSIVE. Ways are listed best first; the one that was taken is recorded. Effects were measured on a local cluster of three
brokers and three controllers on two cores, one run each: read them as orders of magnitude.
"""


@dataclass(frozen=True)
class Told:
    """What a fault says of itself."""

    name: str
    what: str
    settings: Mapping[str, Any]
    ways: Mapping[str, str]
    needs: str
    bites_when: str
    effects: Mapping[str, Mapping[str, float | None]]  # by mode


def family() -> list[Told]:
    """All faults by name."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    return [_told(name, measured.get(name, {})) for name in registry.names("fault")]


def _told(name: str, effects: Mapping[str, Mapping[str, float | None]]) -> Told:
    kind = registry.load("fault", name)
    what = (sys.modules[kind.__module__].__doc__ or "").strip()
    described = kind().describe()
    settings = {field.name: described[field.name] for field in fields(kind) if field.init}
    return Told(
        name, " ".join(what.split()), settings, kind.ways, kind.needs.__name__, kind.bites_when, effects
    )


def as_table(told: list[Told]) -> str:
    """One fault a line, for a terminal."""
    wide = max(len(one.name) for one in told)
    return "\n".join(
        f"{one.name:<{wide}}  {one.what.partition('. ')[0].rstrip('.')} [{', '.join(one.ways)}]"
        for one in told
    )


def as_json(told: list[Told]) -> str:
    return json.dumps([vars(one) for one in told], indent=1)


def as_markdown(told: list[Told]) -> str:
    return "\n".join([_HEAD, *(_section(one) for one in told)])


def _section(one: Told) -> str:
    lines = [f"## {one.name}", "", one.what, ""]
    if one.settings:
        told = ", ".join(f"`{name}={_plain(value)}`" for name, value in one.settings.items())
        lines.append(f"- Settings and what they are by default: {told}")
    ways = "; ".join(f"{way} (needs {needs})" for way, needs in one.ways.items())
    lines += [f"- Ways: {ways}", f"- Hits nodes that are: {one.needs}", f"- Bites when {one.bites_when}."]
    lines += [f"- {_effect(mode, numbers)}" for mode, numbers in one.effects.items()]
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> str:
    return json.dumps(value) if not isinstance(value, str) else value


def _effect(mode: str, numbers: Mapping[str, float | None]) -> str:
    def seconds(name: str) -> str:
        value = numbers.get(name)
        return "not seen" if value is None else f"{value:.1f} s"

    return (
        f"Measured, {mode}: longest time without an ack {seconds('unavailable_s_max')}; "
        f"all partitions acked again {seconds('recovered_s')} after it began"
    )
