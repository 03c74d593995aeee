"""The programs of one Kafka version: Java, the jars of that version, and a class archive made of them once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness import provision
from harness.clusters.disk import byteman
from harness.clusters.processes.class_archive import with_archive
from harness.clusters.processes.java import Jvm
from harness.errors import SetupError, UsageError
from harness.provision.java import java_version
from harness.provision.kafka import must_be_release, version_of
from harness.runtime.cache import provide, silent
from harness.runtime.plain_paths import must_suit_java


def programs(version: str, train: Callable[[Jvm, Path], None], *, exactly: bool = False) -> Jvm:
    """Return the programs of a version, fetched if missing; see `kafka_libs`, and `with_archive` for `train`."""
    java, libs = provision.java(), provision.kafka_libs(version, exactly=exactly)
    jvm = Jvm(java, java_version(java) or "unknown", libs, version_of(libs))
    must_suit_java(jvm.libs, "the jars in", "use another folder (KAFKA_LIBS)")
    return with_archive(jvm, train)


def with_byteman(jvm: Jvm) -> Jvm:
    """Return the same programs with the agent that breaks disks, for clusters with Options(byteman=True)."""
    agent = provision.byteman()
    must_suit_java(agent, "the jar", "use another one (BYTEMAN)")
    return replace(jvm, agent=agent, rules=byteman_script())


def byteman_script() -> Path:
    """Return the rules of the agent, as a file in the cache folder."""

    def build(into: Path) -> None:
        (into / byteman.SCRIPT_NAME).write_text(byteman.script(), encoding="ascii")

    number = hashlib.sha256(byteman.script().encode()).hexdigest()[:12]
    folder = provide(
        "byteman-rules",
        number,
        build,
        whole=lambda made: (made / byteman.SCRIPT_NAME).is_file(),
        progress=silent,
    )
    file = folder / byteman.SCRIPT_NAME
    if "," in str(file):  # a comma separates the options of an agent
        raise SetupError(
            f"{file}: Byteman does not accept a path with a comma; set XDG_CACHE_HOME to another folder"
        )
    return file


def by_node(names: Sequence[str], version: str, mixed: Mapping[str, str]) -> dict[str, str]:
    """Return the version of each node by its name."""
    if unknown := sorted(mixed.keys() - set(names)):
        asked = f"{unknown[0]} to run Kafka {mixed[unknown[0]]}"
        raise UsageError(f"there is no node {asked}; there are: {', '.join(names)}")
    for each in (version, *mixed.values()):
        must_be_release(each)
    return {name: mixed.get(name, version) for name in names}
