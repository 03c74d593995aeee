"""Versions of everything that has a part in a verdict."""

from __future__ import annotations

import functools
import platform
from importlib import metadata

from harness import __version__, provision


@functools.cache
def versions() -> dict[str, str]:
    import confluent_kafka

    return {
        "onceproof": __version__,
        "python": platform.python_version(),
        "kafka": provision.KAFKA_VERSION,
        "confluent-kafka": metadata.version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
        "pyspark": metadata.version("pyspark"),
        "toxiproxy": provision.TOXIPROXY_VERSION,
        "byteman": provision.BYTEMAN_VERSION,
    }
