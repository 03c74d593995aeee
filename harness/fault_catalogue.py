"""The catalogue of faults, made from the faults themselves, for `./onceproof faults` and docs/faults.md."""

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

A target picks the nodes, a schedule the time. While a fault is held it measures its own bite. After healing it checks that
nothing of it is left. Both are in the ledger and in the report. A run in which no fault bit is INCONCLUSIVE. Ways are listed
best first; the run records which one was used. Effects were measured on a local cluster of three brokers and three controllers
on two cores, one run each: read them as orders of magnitude.
"""


@dataclass(frozen=True)
class FaultEntry:
    """A fault's description of itself."""

    name: str
    what: str
    settings: Mapping[str, Any]
    ways: Mapping[str, str]
    needs: str
    bites_when: str
    effects: Mapping[str, Mapping[str, float | None]]  # by mode


def catalogue() -> list[FaultEntry]:
    """Return all faults, sorted by name."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    return [_entry(name, measured.get(name, {})) for name in registry.names("fault")]


def _entry(name: str, effects: Mapping[str, Mapping[str, float | None]]) -> FaultEntry:
    kind = registry.load("fault", name)
    what = (sys.modules[kind.__module__].__doc__ or "").strip()
    described = kind().describe()
    settings = {field.name: described[field.name] for field in fields(kind) if field.init}
    return FaultEntry(
        name, " ".join(what.split()), settings, kind.ways, kind.needs.__name__, kind.bites_when, effects
    )


def as_table(entries: list[FaultEntry]) -> str:
    """Return one line for each fault, for a terminal."""
    wide = max(len(one.name) for one in entries)
    return "\n".join(
        f"{one.name:<{wide}}  {one.what.partition('. ')[0].rstrip('.')} [{', '.join(one.ways)}]"
        for one in entries
    )


def as_json(entries: list[FaultEntry]) -> str:
    return json.dumps([vars(one) for one in entries], indent=1)


def as_markdown(entries: list[FaultEntry]) -> str:
    return "\n".join([_HEAD, *(_section(one) for one in entries)])


def _section(one: FaultEntry) -> str:
    lines = [f"## {one.name}", "", one.what, ""]
    if one.settings:
        settings = ", ".join(f"`{name}={_plain(value)}`" for name, value in one.settings.items())
        lines.append(f"- Settings (defaults): {settings}")
    ways = "; ".join(f"{way} (needs {needs})" for way, needs in one.ways.items())
    needs = "any node" if one.needs == "Node" else one.needs
    lines += [f"- Ways: {ways}", f"- Needs: {needs}", f"- Bites when {one.bites_when}."]
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
