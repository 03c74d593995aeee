"""The doctor's looks at programs and libraries: which are here, their versions and paths."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from harness.errors import SetupError
from harness.machine.answers import LOOK_TIMEOUT_S, Answer, no, yes
from harness.provision import external_tool
from harness.provision.byteman import BYTEMAN_VERSION, find_byteman
from harness.provision.faketime import find_faketime
from harness.provision.java import BY_HAND, find_java, java_version, untried
from harness.provision.kafka import KAFKA_VERSION, find_kafka_libs, version_of
from harness.provision.toxiproxy import TOXIPROXY_VERSION, find_go, find_toxiproxy
from harness.runtime import environment


def python() -> Answer:
    """Look at the Python that runs this."""
    note = environment.untried_python()
    return yes(f"{platform.python_version()} at {sys.executable}" + (f", {note}" if note else ""))


def uv() -> Answer:
    """Look for the uv of the environment, then on the path."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    return _version_of(found, "uv")


def java() -> Answer:
    """Look for a suitable Java without starting it."""
    try:
        found = find_java()
    except SetupError as error:
        return no(str(error))
    if found:
        version = java_version(found)
        note = untried(version)
        return yes(f"{version} at {found}" + (f", {note}" if note else ""))
    by_apt = os.geteuid() == 0 and shutil.which("apt-get") is not None
    return no(
        "not here; the set-up gets it by apt-get" if by_apt else f"not here; {BY_HAND}", fetchable=by_apt
    )


def maven() -> Answer:
    """Look for mvn; asking its version would start a JVM."""
    return _on_path("mvn", debian="maven")


def go() -> Answer:
    """Look for a Go that is new enough."""
    found = find_go()
    return yes(f"{found[1]} at {found[0]}") if found else no("no go on the path that is new enough")


def kafka_jars() -> Answer:
    """Look for the broker jars in the cache or in KAFKA_LIBS."""
    return _provided(find_kafka_libs, KAFKA_VERSION, version_of)


def toxiproxy() -> Answer:
    """Look for the Toxiproxy binary in the cache or in TOXIPROXY."""
    return _provided(find_toxiproxy, TOXIPROXY_VERSION)


def byteman() -> Answer:
    """Look for the Byteman jar in the cache or in BYTEMAN."""
    return _provided(find_byteman, BYTEMAN_VERSION)


def confluent_kafka() -> Answer:
    """Look for the client library, with the librdkafka inside it."""
    import confluent_kafka as library

    return yes(f"{importlib.metadata.version('confluent-kafka')} with librdkafka {library.libversion()[0]}")


def pyspark() -> Answer:
    """Look for the installed pyspark, without importing it."""
    try:
        return yes(importlib.metadata.version("pyspark"))
    except importlib.metadata.PackageNotFoundError:
        return no("not installed in this Python environment")


def docker_client() -> Answer:
    """Look for the docker command; the engine has its own look."""
    return _version_of(shutil.which("docker"), "docker")


def chromium() -> Answer:
    """Look for a Chromium by one of its names."""
    return _on_path("chromium", "chromium-browser", "google-chrome", debian="chromium")


def libfaketime() -> Answer:
    """Look for libfaketime: installed, or fetched when a cluster with clocks is first started."""
    return _provided(find_faketime, "libfaketime")


def setpriv() -> Answer:
    """Look for the setpriv command."""
    return _on_path("setpriv", debian="util-linux")


def _provided(
    find: Callable[[], Path | None], wanted: str, version: Callable[[Path], str] | None = None
) -> Answer:
    try:
        found = find()
    except SetupError as error:
        return no(str(error))
    if found is None:
        return no(f"{wanted} not fetched yet; the set-up does it", fetchable=True)
    return yes(f"{version(found) if version else wanted} at {found}")


def _on_path(*names: str, debian: str) -> Answer:
    found = next((path for path in map(shutil.which, names) if path), None)
    return yes(found) if found else no(f"no {names[0]} on the path (Debian: {debian})")


def _version_of(found: str | None, name: str) -> Answer:
    if not found:
        return no(f"no {name} on the path")
    said = external_tool.output([found, "--version"], timeout_s=LOOK_TIMEOUT_S)
    return yes(f"{said.splitlines()[0]} at {found}") if said else no(f"{found} does not answer")
