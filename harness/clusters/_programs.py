"""What the nodes of one Kafka version run: Java, the jars of that version, and a class archive made of them once."""

from __future__ import annotations

from pathlib import Path

from harness import provision
from harness.clusters._archive import with_archive
from harness.clusters._jvm import Jvm
from harness.errors import SetupError
from harness.provision.java import java_version
from harness.provision.kafka import version_of


def programs(version: str) -> Jvm:
    """The programs of a version, fetched if they are not here. `KAFKA_LIBS` wins, whatever its version."""
    java, libs = provision.java(), provision.kafka_libs(version)
    jvm = Jvm(java, java_version(java) or "unknown", libs, version_of(libs), provision.byteman())
    return with_archive(jvm, _run_once)


def exactly(version: str) -> Jvm:
    """The same, but never of another version, which a node that changes its version cannot do with."""
    found = programs(version)
    if found.kafka_version != version:
        raise SetupError(
            f"Kafka {version} was asked for, KAFKA_LIBS has {found.kafka_version}: unset KAFKA_LIBS"
        )
    return found


def _run_once(jvm: Jvm, folder: Path) -> None:
    """Let one broker do a bit of everything and end in order, so that it writes down the classes it used."""
    from harness.clusters.local import LocalCluster

    cluster = LocalCluster(folder, brokers=1, controllers=1, combined=True, programs=lambda _version: jvm)
    with cluster:
        for node in cluster.local_nodes():
            node.shut_down()
