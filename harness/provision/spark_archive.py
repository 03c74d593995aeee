"""A class archive (AppCDS) for Spark's JVM, made once: later sessions load prepared classes.

`./onceproof setup` makes it, and so does the first `prove` or `matrix` without one (harness.provision.background_archive).

It also compiles the Python packages that a session imports: an installer does not always do that, and if
`PYTHONDONTWRITEBYTECODE` is set, every process, Spark's Python workers too, would compile them again.
Measurements of a verdict on a run of 10,000 records in a new process, on two cores: docs/performance.md.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import OnceproofError
from harness.provision import external_tool
from harness.provision.external_tool import ToolTimeout
from harness.provision.java import find_java, java_version
from harness.runtime.cache import Progress, place_of, provide, silent, timed, to_stderr

CLASSES, COMMAND, FAILED = "classes.jsa", "command.json", "failed.txt"
TRAINING_LIMIT_S = 900.0  # half a minute on an idle machine
LAUNCHER_LIMIT_S = 300.0  # a second, but not with the lowest priority on a busy machine
ROOM_NEEDED = 400 << 20  # bytes: twice the size of an archive
NAME = "spark-archive"  # of the folder in the cache folder, and of the log
_TRAINING = 2  # increased when the training or its output changes
_COMPILED = ("pyspark", "py4j", "pandas", "numpy", "pyarrow")
# Never imported by a session, and larger than all the rest.
_NOT_COMPILED = r"/(tests?|testing/connectutils|examples|connect|mllib|ml|pipelines)/"


@dataclass(frozen=True)
class SparkArchive:
    """The settings that start Spark's JVM with the archive; the class path must be the one it was made with."""

    classes: Path
    classpath: str
    options: tuple[str, ...]  # the JVM options of Spark's own launcher


def spark_archive(progress: Progress = to_stderr, *, again: bool = False) -> SparkArchive | None:
    """Return the archive; make it if it is missing, in half a minute. None if that fails; sessions work without.

    A failure is recorded and not retried, unless `again` is set. A time-out is not recorded: the machine was busy.
    """
    java = find_java()
    if java is None:
        return None
    name = _key(java)
    _forget_older(name)
    if again:
        (place_of(NAME, name) / FAILED).unlink(missing_ok=True)
    try:
        provide(NAME, name, lambda into: _train(into, java, progress), whole=_tried, progress=silent)
    except ToolTimeout as error:
        progress(f"no class archive for Spark, the next start tries again: {error}")
    return find_spark_archive()


def find_spark_archive() -> SparkArchive | None:
    """Return the archive for this Java and this pyspark if it exists; makes nothing, and takes a few milliseconds."""
    try:
        java = find_java()
        if java is None:
            return None
        folder = place_of(NAME, _key(java))
        command = json.loads((folder / COMMAND).read_text(encoding="utf-8"))
        found = SparkArchive(folder / CLASSES, str(command["classpath"]), tuple(command["options"]))
    except (OnceproofError, OSError, ValueError, LookupError, TypeError):
        return None  # a damaged archive: Spark starts without
    return found if found.classes.is_file() else None


def obstacle() -> str | None:
    """Return why the archive is missing and would not be made now; None if it can be made."""
    try:
        java = find_java()
        if java is None:
            return "there is no Java yet"
        folder = place_of(NAME, _key(java))
        if (folder / FAILED).is_file():
            words = (folder / FAILED).read_text(encoding="utf-8", errors="replace").split()
            return f"making it failed before: {' '.join(words)[:300] or 'without a reason'}"
        there = next(above for above in folder.parents if above.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            return f"{there} cannot be written"
        if (free := shutil.disk_usage(there).free) < ROOM_NEEDED:
            return f"{there}: {free >> 20} MiB free, {ROOM_NEEDED >> 20} are needed"
    except (OnceproofError, OSError) as error:
        return str(error)
    return None


def classpath() -> str:
    """Return Spark's jars by name, in a fixed order: an archive is only valid for exactly the same class path."""
    jars = sorted(_jars().glob("*.jar"))
    # Spark's launcher puts slf4j's own interface before jars that bring a copy of it.
    return os.pathsep.join(
        str(jar) for jar in sorted(jars, key=lambda j: not j.name.startswith("slf4j-api-"))
    )


def compile_packages(progress: Progress = to_stderr) -> bool:
    """Compile the Python packages of a session unless done before; return False if they cannot be written."""
    folders = [folder for name in _COMPILED if (folder := _package(name)) is not None]
    if all(Path(importlib.util.cache_from_source(str(f / "__init__.py"))).is_file() for f in folders):
        return True
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", "-x", _NOT_COMPILED, *map(str, folders)]
    try:
        with timed("compiling Python packages, once", progress):
            external_tool.run(command, log=NAME, timeout_s=TRAINING_LIMIT_S)
    except OnceproofError:
        return False  # a read-only installation: each process compiles for itself, as before
    return True


def launcher_options(java: Path) -> tuple[str, ...]:
    """Return the options that Spark's launcher adds to the command line of a driver's JVM, by running the launcher.

    Raises ToolTimeout.
    """
    home = _jars().parent
    answer = external_tool.output(
        ["env", f"SPARK_HOME={home}", "SPARK_SCALA_VERSION=2.13", f"JAVA_HOME={java.parent.parent}", java, "-cp",
         f"{home / 'jars'}/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit",
         "pyspark-shell"],
        timeout_s=LAUNCHER_LIMIT_S,
        must_end=True,
    )  # fmt: skip
    words = (answer or "").strip("\0\n").split("\0")
    try:
        between = words[words.index("-cp") + 2 : words.index("org.apache.spark.deploy.SparkSubmit")]
    except ValueError:
        return ()
    # Only machine learning uses the vector module; with it Java prints a warning on stderr.
    return tuple(w for w in between if not w.startswith("-Xm") and not w.endswith("jdk.incubator.vector"))


def _train(into: Path, java: Path, progress: Progress) -> None:
    """Run a session that writes the archive. A failure is recorded, so that not every command retries.

    Raises ToolTimeout, which is not recorded.
    """
    options = launcher_options(java)
    command = {"classpath": classpath(), "options": options, "jars": str(_jars())}
    (into / COMMAND).write_text(json.dumps(command, indent=1) + "\n", encoding="utf-8")
    try:
        if not options:
            raise OnceproofError("Spark's launcher did not print the command line of a JVM")
        with timed("making a class archive for Spark, once", progress):
            external_tool.run(
                [sys.executable, "-m", "harness.spark_training", into],
                log=NAME,
                env={"JAVA_HOME": str(java.parent.parent), "PYTHONPATH": with_harness()},
                timeout_s=TRAINING_LIMIT_S,
            )
    except ToolTimeout:
        raise
    except OnceproofError as error:
        (into / FAILED).write_text(f"{error}\n", encoding="utf-8")
        (into / CLASSES).unlink(missing_ok=True)
    if not (into / CLASSES).is_file():
        (into / FAILED).touch()


def _tried(folder: Path) -> bool:
    return (folder / CLASSES).is_file() or (folder / FAILED).is_file()


def _key(java: Path) -> str:
    """Return the key of the archive: it fits one Java and one class path, down to the times of its jars."""
    facts = [str(_TRAINING), str(java.resolve())]
    for jar in classpath().split(os.pathsep):
        stat = Path(jar).stat()
        facts.append(f"{jar} {stat.st_size} {stat.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return f"pyspark-{importlib.metadata.version('pyspark')}-java-{java_version(java)}-{digest}"


def _forget_older(name: str) -> None:
    """Remove archives for earlier jars in the same folder and for jars that are gone, as each takes 200 MB.

    An archive that was being made for jars that are gone is removed too: no later start would make it.
    """
    for folder in _siblings(name):
        try:
            jars = json.loads((folder / COMMAND).read_text(encoding="utf-8")).get("jars")
        except (OSError, ValueError, AttributeError):
            continue
        earlier = jars == str(_jars()) and not folder.name.startswith(".")  # else another start is making it
        if earlier or not Path(str(jars)).is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def _siblings(name: str) -> Sequence[Path]:
    root = place_of(NAME, name).parent
    if not root.is_dir():
        return []
    return [f for f in (*root.glob("pyspark-*"), *root.glob(".pyspark-*.building")) if f.name != name]


def _jars() -> Path:
    package = _package("pyspark")
    if package is None:
        raise OnceproofError("pyspark is not installed")
    return package / "jars"


def _package(name: str) -> Path | None:
    """Return the folder of a package, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def with_harness() -> str:
    """Return a PYTHONPATH on which another process finds this project first."""
    root = str(Path(__file__).parents[2])
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
