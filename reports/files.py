"""Readers for JSON that a crashed, older or newer writer may have left: what does not fit reads as absent."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from harness.errors import LedgerError
from harness.rundir import read_json


def load(path: Path, missing: str, troubles: list[str]) -> Mapping[str, Any]:
    """The file's content; when it cannot be had, nothing, and a line in `troubles` says why."""
    if not path.exists():
        troubles.append(f"{missing}: there is no {path.name}")
        return {}
    try:
        return read_json(path, "written by another version, or damaged?")
    except (LedgerError, OSError) as error:
        troubles.append(f"{missing}: {path.name} cannot be read: {str(error).removeprefix(f'{path}: ')}")
        return {}


def mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    return value if isinstance(value, dict) else {}


def items(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return value if isinstance(value, list) else []


def text(values: Mapping[str, Any], name: str, otherwise: str = "") -> str:
    value = values.get(name)
    if isinstance(value, dict):  # a fault or target as data
        value = value.get("name") or " ".join(map(str, value.values()))
    return otherwise if value is None else str(value)


def decimal(value: Any) -> float | None:
    """A number, or None for anything else: NaN and infinity have no place in a chart either."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if known else None


def integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def counts(values: Mapping[str, Any], name: str) -> Mapping[str, int]:
    return {k: v for k, v in mapping(values, name).items() if integer(v) is not None}


def texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(map(str, items(values, name)))
