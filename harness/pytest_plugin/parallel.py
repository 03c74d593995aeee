"""pytest-xdist: two clusters at a time would measure each other, so tests of onceproof never run side by side.

With `--dist loadgroup` all of them run in one worker and share its cluster. Else a lock lets one test of all workers run
at a time, and each has a cluster of its own: a worker that kept its cluster would keep the lock until the session ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

GROUP = "onceproof"


def grouped(config: pytest.Config) -> bool:
    """Whether xdist keeps the tests of a group in one worker; the workers have that as an option `loadgroup`."""
    option = config.option
    return getattr(option, "dist", "no") == "loadgroup" or bool(getattr(option, "loadgroup", False))


def alone(config: pytest.Config) -> bool:
    """Whether each test takes the lock and has a cluster of its own."""
    return hasattr(config, "workerinput") and not grouped(config)


def scope(fixture_name: str, config: pytest.Config) -> Literal["session", "function"]:  # noqa: ARG001  pytest calls it by names
    """The scope of the cluster and of the campaign."""
    return "function" if alone(config) else "session"


def described(config: pytest.Config) -> str:
    """What the header says about xdist; empty without it."""
    if getattr(config.option, "dist", "no") == "no":
        return ""
    if grouped(config):
        return "onceproof under xdist: its tests share one cluster in one worker"
    return (
        "onceproof under xdist: its tests run one at a time, each on a cluster of its own; "
        "with --dist loadgroup they share one"
    )


@contextmanager
def turn(config: pytest.Config, runs: Path) -> Iterator[None]:
    """Hold the lock of the run folder if this session has to take turns."""
    if not alone(config):
        yield
        return
    runs.mkdir(parents=True, exist_ok=True)
    with (runs / ".pytest.lock").open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # pytest-timeout is the limit; the lock ends with the process
        yield
