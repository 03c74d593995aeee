"""pytest-xdist: two clusters at a time would disturb each other, so tests of onceproof take turns.

A lock lets one test of all workers run at a time, each on a cluster of its own: a worker that kept its cluster for its next
test would keep the lock until the session ends. Groups of xdist (`--dist loadgroup`) are no way to share a cluster: xdist 3.8
ignores them under pytest 9.2, because it renames tests by an attribute that pytest no longer reads.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest


def taking_turns(config: pytest.Config) -> bool:
    """Return True in a worker of xdist: there each test takes the lock and has its own cluster."""
    return hasattr(config, "workerinput")


def scope(fixture_name: str, config: pytest.Config) -> Literal["session", "function"]:  # noqa: ARG001  pytest calls it by names
    """The scope of the cluster and of the campaign."""
    return "function" if taking_turns(config) else "session"


def described(config: pytest.Config) -> str:
    """Return the line of the header about xdist; empty without xdist."""
    if getattr(config.option, "dist", "no") == "no":
        return ""
    return (
        "onceproof under xdist: its tests run one at a time, each on a cluster of its own; "
        "with -m onceproof -n 0 they share one"
    )


@contextmanager
def turn(config: pytest.Config, runs: Path) -> Iterator[None]:
    """Hold the lock of the run folder if this session takes turns."""
    if not taking_turns(config):
        yield
        return
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / ".pytest.lock").open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # pytest-timeout is the limit; the lock ends with the process
        yield
