"""A class archive (AppCDS) for the brokers' JVMs: made once, so that each later start loads prepared classes.

Measured alternately on two busy cores, three combined nodes until ready: 8.9 to 10.7 s without, 6.8 to 7.5 s with it. The
Byteman agent must not be put on the boot class path, or the JVM would ignore the archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.clusters.processes.java import Jvm
from harness.errors import OnceproofError, StartTimeout, WaitTimeout
from harness.runtime.cache import provide, silent, timed, to_stderr

_ARCHIVE, _FAILED = "classes.jsa", "failed.txt"


def with_archive(jvm: Jvm, train: Callable[[Jvm, Path], None]) -> Jvm:
    """Return the same programs with an archive; `train` has to run a broker with `jvm.train` and let it end normally.

    If no archive can be made, the cluster works without; the reason is in the cache folder. An attempt that timed out on a
    busy machine is repeated by the next start.
    """

    def build(into: Path) -> None:
        archive = into / _ARCHIVE
        try:
            with timed("making a class archive for the brokers, once", to_stderr):
                train(replace(jvm, train=archive), into / "training")
        except OnceproofError as error:
            if isinstance(error, StartTimeout | WaitTimeout):
                raise
            (into / _FAILED).write_text(f"{error}\n", encoding="utf-8")
        if not archive.is_file():
            (into / _FAILED).touch()

    try:
        folder = provide("class-archive", _key(jvm), build, whole=_whole, progress=silent)
    except (StartTimeout, WaitTimeout):
        return jvm
    archive = folder / _ARCHIVE
    return replace(jvm, archive=archive) if archive.is_file() else jvm


def _whole(folder: Path) -> bool:
    return (folder / _ARCHIVE).is_file() or (folder / _FAILED).is_file()


def _key(jvm: Jvm) -> str:
    """Return the key of the archive: it fits one Java and one class path, down to the times of its jars."""
    facts = [str(jvm.java.resolve())]
    facts += [
        f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in sorted(jvm.libs.glob("*.jar"))
    ]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return f"kafka-{jvm.kafka_version}-java-{jvm.java_version}-{digest}"
