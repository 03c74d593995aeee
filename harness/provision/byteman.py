"""The Byteman agent jar, by Maven coordinates or from `BYTEMAN`: rules in a running broker without root."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import SetupError
from harness.provision.maven import Coordinates, fetch_jars
from harness.runtime.cache import Progress, place_of, provide, to_stderr

BYTEMAN_VERSION = "4.0.27"
_JAR = f"byteman-{BYTEMAN_VERSION}.jar"
BY_HAND = "set BYTEMAN=JAR to a byteman.jar"


def byteman(progress: Progress = to_stderr) -> Path:
    """Return the agent jar. `BYTEMAN` takes precedence."""
    if chosen := os.environ.get("BYTEMAN"):
        if not Path(chosen).is_file():
            raise SetupError(f"BYTEMAN={chosen} is not a file: {BY_HAND}, or unset it")
        return Path(chosen).absolute()

    def build(into: Path) -> None:
        coordinates = Coordinates("org.jboss.byteman", "byteman", BYTEMAN_VERSION)
        try:
            fetch_jars(f"Byteman {BYTEMAN_VERSION}", coordinates, into, alone=True, progress=progress)
        except SetupError as error:
            raise SetupError(f"{error}; by hand: {BY_HAND}") from error

    return provide("byteman", BYTEMAN_VERSION, build, whole=_whole, progress=progress) / _JAR


def find_byteman() -> Path | None:
    """Return the jar that `byteman` would return without fetching anything, or None."""
    if os.environ.get("BYTEMAN"):
        return byteman()
    place = place_of("byteman", BYTEMAN_VERSION)
    return place / _JAR if _whole(place) else None


def _whole(folder: Path) -> bool:
    return (folder / _JAR).is_file()
