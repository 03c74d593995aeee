"""The specification of a worker as a JSON file: written by the harness for each life, read by the worker process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from harness import registry
from harness.contracts import WorkerSpec
from harness.errors import OnceproofError

_SECRET = "security"  # the only field that is in no file


def write_spec(path: Path, spec: WorkerSpec) -> None:
    """Write the role and all fields but the secret one."""
    made = {"role": spec.role, **{name: value for name, value in vars(spec).items() if name != _SECRET}}
    path.write_text(json.dumps(made, indent=1, default=vars), encoding="utf-8")  # vars: of a dataclass inside


def read_spec(path: Path) -> WorkerSpec:
    """Return what `write_spec` has written. An OnceproofError names a key that is unknown, missing or of a wrong type."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not isinstance(found.get("role"), str):
            raise ValueError("an object with a role is expected")
        role = registry.load("role", found.pop("role"))
        spec: WorkerSpec = _object(role.spec_class, found, "", without=_SECRET)
        return spec
    except (OSError, ValueError) as error:
        raise OnceproofError(f"{path}: not the specification of a worker: {error}") from error


def _object(kind: Any, found: Any, place: str, without: str = "") -> Any:
    """Return the dataclass with the values in `found`, which must have each of its fields and nothing else."""
    if not isinstance(found, dict):
        raise ValueError(f"{place}: an object is expected")
    wanted = [one.name for one in fields(kind) if one.name != without]
    if unknown := sorted(found.keys() - set(wanted)):
        raise ValueError(f"unknown key {place}{unknown[0]}; {kind.__name__} has {', '.join(wanted)}")
    if missing := [name for name in wanted if name not in found]:
        raise ValueError(f"missing key {place}{missing[0]} of {kind.__name__}")
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name], found[name], f"{place}{name}") for name in wanted})


def _value(kind: Any, found: Any, place: str) -> Any:
    """Return the value as the type of its field has it: JSON knows no enums, tuples and dataclasses."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType and NoneType in inner:
        (kind,) = [one for one in inner if one is not NoneType]
        return None if found is None else _value(kind, found, place)
    if origin is tuple and isinstance(found, list):
        return tuple(_value(inner[0], one, f"{place}[{n}]") for n, one in enumerate(found))
    if origin is Mapping and isinstance(found, dict):
        return found
    if is_dataclass(kind):
        return _object(kind, found, f"{place}.")
    if isinstance(kind, type) and issubclass(kind, Enum) and found in list(kind):
        return kind(found)
    if kind is float and type(found) is int:
        return float(found)
    if origin is None and type(found) is kind:
        return found
    raise ValueError(f"{place} is {found!r}: {getattr(kind, '__name__', kind)} is expected")
