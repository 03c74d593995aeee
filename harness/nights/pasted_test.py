"""The source of a pytest test for a scenario: ready to paste, with what differs from the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

from harness.scenario import Scenario
from harness.schedule import Window
from harness.targets import Target


def source_of(scenario: Scenario, wanted: tuple[str, ...] = ()) -> str:
    """Return a module with one test, which fails as long as the scenario shows one of these anomalies."""
    names = {"Scenario", "Verdict"}
    body = _written(scenario, names, "        ")
    words = "_".join(wanted) or "nothing"
    title = f"test_{scenario.mode}_shows_no_{words}" if wanted else f"test_{scenario.mode}_holds"
    return (
        f"from onceproof import {', '.join(sorted(names))}\n\n\n"
        f"def {title}(execute):\n"
        f"    result = execute(\n        {body}\n    )\n"
        f"    assert result.verdict is Verdict.HELD, result.explain()\n"
    )


def expression_of(scenario: Scenario) -> tuple[str, set[str]]:
    """Return the expression that makes the scenario, and the names of `onceproof` that it needs."""
    names: set[str] = set()
    return _written(scenario, names, ""), names


def _written(value: Any, names: set[str], indent: str) -> str:
    """Return the source of a value; add the names that it uses."""
    if isinstance(value, Enum):
        names.add(type(value).__name__)
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Target):
        names.add("Target")
        return f"Target({value.role!r}, {value.settings!r})"
    if is_dataclass(value) and not isinstance(value, type):
        return _called(value, names, indent)
    if isinstance(value, tuple):
        deeper = indent + "    "
        inner = "".join(f"\n{deeper}{_written(each, names, deeper)}," for each in value)
        return f"({inner}\n{indent})" if value else "()"
    if isinstance(value, Mapping):
        return repr(dict(value))
    return repr(value)


def _called(value: Any, names: set[str], indent: str) -> str:
    kind = type(value).__name__
    names.add(kind)
    given = [
        f"{each.name}={_written(getattr(value, each.name), names, indent + '    ')}"
        for each in fields(value)
        if each.init and getattr(value, each.name) != _default(each)
    ]
    if isinstance(value, Window | Scenario):
        inner = "".join(f"\n{indent}    {each}," for each in given)
        return f"{kind}({inner}\n{indent})"
    return f"{kind}({', '.join(given)})"


def _default(each: Any) -> Any:
    if each.default is not MISSING:
        return each.default
    return each.default_factory() if each.default_factory is not MISSING else MISSING
