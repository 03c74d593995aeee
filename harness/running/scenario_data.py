"""Scenarios as plain data: what `Scenario.describe` writes and people write by hand, read back and checked.

Every error is one line that names the place in the file, such as `claim[2].scenario.producers.acks`.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import LedgerError, UsageError
from harness.ledger.rundir import RunDir, read_json
from harness.scenario import Scenario
from harness.schedule import Schedule, Window, fault_of
from harness.targets import Target

# Written by `Scenario.describe` for readers of a manifest; they follow from other values.
_DERIVED = frozenset({"guarantee", "fault"})
_WINDOW = frozenset({"fault", "on", "start_s", "hold_s", "group", "deletes"})


def scenario_of(data: Mapping[str, Any], place: str = "scenario") -> Scenario:
    """Return the scenario that the data describes; raise UsageError, in one line, for data that describes none."""
    plain = {name: value for name, value in data.items() if name not in _DERIVED}
    schedule = _schedule(plain.pop("schedule", ()), f"{place}.schedule")
    made = _made(Scenario, plain, place, schedule=schedule)
    if made.workload not in registry.names("workload"):
        raise _wrong(f"{place}.workload", made.workload, f"one of {', '.join(registry.names('workload'))}")
    return typing.cast(Scenario, made)


def scenario_at(path: Path) -> Scenario:
    """Return the scenario of a run folder or of a file such as its scenario.json.

    Runs of earlier versions have no scenario.json; their manifests contain the scenario.
    """
    if not path.is_dir():
        return scenario_of(read_json(path, "a run folder or a scenario.json is expected"), str(path))
    run = run_at(path)
    if run.scenario.exists():
        return scenario_of(read_json(run.scenario, "is this a run folder?"), str(run.scenario))
    manifest = read_json(run.manifest, "is this a run folder?")
    if not isinstance(manifest.get("scenario"), Mapping):
        raise LedgerError(f"{run.manifest}: it contains no scenario; is this the manifest of a run?")
    return scenario_of(manifest["scenario"], f"{run.manifest}: scenario")


def run_at(path: Path) -> RunDir:
    """Return the run of a run folder, of a file in it, or the first run in the folder of a scenario."""
    folder = path if path.is_dir() else path.parent
    runs = sorted(manifest.parent for manifest in folder.glob("*/manifest.json"))
    return RunDir(runs[0] if runs and not (folder / "manifest.json").exists() else folder)


def _schedule(data: Any, place: str) -> Schedule:
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise _wrong(place, data, "a list of fault windows")
    return tuple(_window(each, f"{place}[{number}]") for number, each in enumerate(data, 1))


def _window(data: Any, place: str) -> Window:
    if not isinstance(data, Mapping):
        raise _wrong(place, data, "a table with fault, on, start_s and hold_s")
    if missing := [name for name in ("fault", "on") if not isinstance(data.get(name), Mapping)]:
        example = {"fault": '{ fault = "kill" }', "on": '{ target = "leader" }'}[missing[0]]
        raise UsageError(f"{place}.{missing[0]}: missing; give a table such as {example}")
    _known(data, _WINDOW, place)
    if "fault" not in data["fault"] or "target" not in data["on"]:
        raise UsageError(f"{place}: `fault` needs the key fault and `on` the key target")
    times = {name: _value(data.get(name, default), float, f"{place}.{name}")
             for name, default in (("start_s", 0.5), ("hold_s", 1.5))}  # fmt: skip
    try:
        return Window(
            fault_of(data["fault"]), Target.of(data["on"]), **times, group=str(data.get("group", ""))
        )
    except (TypeError, ValueError, UsageError) as error:
        raise UsageError(f"{place}: {error}") from error


def _made(kind: type, data: Mapping[str, Any], place: str, **ready: Any) -> Any:
    """Return an instance of a dataclass from a table with its fields."""
    types_of = typing.get_type_hints(kind)
    settable = {each.name: each for each in fields(kind) if each.init}
    _known(data, frozenset(settable), place)
    values = {name: _value(value, types_of[name], f"{place}.{name}") for name, value in data.items()}
    given = {**values, **ready}
    for name, each in settable.items():
        if name not in given and each.default is MISSING and each.default_factory is MISSING:
            raise UsageError(f"{place}.{name}: missing")
    try:
        return kind(**given)
    except (ValueError, UsageError) as error:
        raise UsageError(f"{place}: {error}") from error


def _value(value: Any, kind: Any, place: str) -> Any:
    """Return a value as its field needs it; `kind` is the annotation of the field."""
    options = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    if value is None and type(None) in options:
        return None
    (kind,) = [each for each in options if each is not type(None)]
    origin = typing.get_origin(kind) or kind
    if is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise _wrong(place, value, "a table")
        return _made(typing.cast(type, kind), value, place)
    if isinstance(origin, type) and issubclass(origin, Enum):
        if value not in [each.value for each in origin]:
            raise _wrong(place, value, f"one of {', '.join(str(each.value) for each in origin)}")
        return origin(value)
    if origin is tuple:
        return _several(value, typing.get_args(kind)[0], place)
    if origin in (Mapping, dict) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(value, Mapping):
            raise _wrong(place, value, "a table")
        return dict(value)
    return _plain(value, kind, place)


def _plain(value: Any, kind: type, place: str) -> Any:
    expected = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[kind]
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(place, value, expected)
    return float(typing.cast(float, value)) if kind is float else value


def _several(value: Any, kind: type, place: str) -> tuple[Any, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _wrong(place, value, "a list")
    return tuple(_value(each, kind, f"{place}[{number}]") for number, each in enumerate(value, 1))


def _known(data: Mapping[str, Any], names: frozenset[str], place: str) -> None:
    for name in data:
        if name not in names:
            near = difflib.get_close_matches(str(name), sorted(names), 3) or sorted(names)
            raise UsageError(f"{place}.{name}: unknown; similar: {', '.join(near)}")


def _wrong(place: str, value: Any, expected: str) -> UsageError:
    return UsageError(f"{place}: {expected} is expected, not {value!r:.80}")
