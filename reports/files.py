"""Readers for files and fields that a crashed, older or newer writer may have left out: a missing field reads as absent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import isfinite
from typing import Any

from harness.ledger.results import read_reconciled, read_verdict
from harness.ledger.rundir import RunDir


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
    """Return a number, or None for anything else: a chart cannot show NaN and infinity."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if known else None


def integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def counts(values: Mapping[str, Any], name: str) -> Mapping[str, int]:
    return {k: v for k, v in mapping(values, name).items() if integer(v) is not None}


def texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(map(str, items(values, name)))


def files_of(run: RunDir) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], list[str]]:
    """Return manifest, findings and verdict, each checked, and why some are missing. LedgerError: they cannot be trusted."""
    if not os.path.lexists(run.manifest):
        return {}, {}, {}, ["the run has no manifest: there is no manifest.json"]
    run.need_own_files()
    manifest = run.read_manifest()
    if not run.reconciled.exists():
        return manifest, {}, {}, ["not reconciled: there is no reconciled.json"]
    reconciled = read_reconciled(run)
    if not run.verdict.exists():
        return manifest, reconciled, {}, ["not judged: there is no verdict.json"]
    return manifest, reconciled, read_verdict(run, manifest, reconciled), []
