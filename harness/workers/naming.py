"""Transactional ids of workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Mode
from harness.scenario import Pipeline


def transactional_id(spec: Mapping[str, Any]) -> str:
    """Return the id of a producer, the same for all its incarnations, so that a new one fences the old one.

    Empty: the producer has none. A rival takes the id of another worker, on purpose.
    """
    name = spec.get("rival_of") or spec["name"]
    return f"{spec['topic']}-{name}" if spec["mode"] == Mode.EXACTLY_ONCE else ""


def has_id_per_session(spec: Mapping[str, Any]) -> bool:
    """Return True if each session has its own transactional id, so that no session fences the one before: a mistake in applications."""
    return spec.get("kind") == Pipeline.RANDOM_IDS
