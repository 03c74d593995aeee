"""What the nodes of one Kafka version run: Java, the jars of that version, and a class archive made of them once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import provision
from harness.clusters._archive import with_archive
from harness.clusters._jvm import Jvm
from harness.contracts import Stoppable
from harness.errors import UsageError
from harness.paths import must_suit_java
from harness.provision.java import java_version
from harness.provision.kafka import must_be_release, version_of


def programs(version: str, *, exactly: bool = False) -> Jvm:
    """The programs of a version, fetched if they are not here; see `kafka_libs`."""
    java, libs = provision.java(), provision.kafka_libs(version, exactly=exactly)
    jvm = Jvm(java, java_version(java) or "unknown", libs, version_of(libs), provision.byteman())
    for path in (jvm.libs, jvm.byteman):
        must_suit_java(path, "the jars in", "use another folder (KAFKA_LIBS, BYTEMAN)")
    return with_archive(jvm, _run_once)


def exactly(version: str) -> Jvm:
    return programs(version, exactly=True)


def by_node(names: Sequence[str], version: str, mixed: Mapping[str, str]) -> dict[str, str]:
    """The version of each node by its name."""
    if unknown := sorted(mixed.keys() - set(names)):
        asked = f"{unknown[0]} to run Kafka {mixed[unknown[0]]}"
        raise UsageError(f"there is no node {asked}; there are: {', '.join(names)}")
    for each in (version, *mixed.values()):
        must_be_release(each)
    return {name: mixed.get(name, version) for name in names}


def _run_once(jvm: Jvm, folder: Path) -> None:
    """Let one broker do a bit of everything and end in order, so that it writes down the classes it used."""
    from harness.clusters.local import LocalCluster

    cluster = LocalCluster(folder, brokers=1, controllers=1, combined=True, programs=lambda _version: jvm)
    with cluster:
        for node in cluster.nodes():
            if isinstance(node, Stoppable):
                node.shut_down()
