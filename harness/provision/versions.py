"""Versions of everything that takes part in a verdict."""

from __future__ import annotations

import functools
import platform
from importlib import metadata

from harness import __version__, provision


def versions(kafka: str = "") -> dict[str, str]:
    """Return all versions; `kafka` is the brokers' version as their cluster describes it, left out if not known."""
    return {**_installed(), **({"kafka": kafka} if kafka else {})}


@functools.cache
def _installed() -> dict[str, str]:
    import confluent_kafka

    return {
        "onceproof": __version__,
        "python": platform.python_version(),
        "confluent-kafka": metadata.version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
        "pyspark": metadata.version("pyspark"),
        "toxiproxy": provision.TOXIPROXY_VERSION,
        "byteman": provision.BYTEMAN_VERSION,
    }
