"""Jars by Maven coordinates: through `mvn` if it is installed, otherwise through the Ivy that pyspark ships.

Both use the registry they are configured for, verify its published checksums, and fetch the same jars.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SetupError
from harness.provision import external_tool
from harness.provision.java import java
from harness.runtime.cache import Progress, lock, log_file, timed, to_stderr

DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

_EXCLUDE_ALL = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>onceproof</groupId><artifactId>fetch</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{exclusions}
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True)
class Coordinates:
    """The Maven coordinates of one published artifact."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


class NotPublished(SetupError):
    """The registry answers, but has no such version."""


def fetch_jars(
    what: str, coordinates: Coordinates, into: Path, *, alone: bool = False, progress: Progress = to_stderr
) -> None:
    """Fetch the jar, and unless `alone` its runtime dependencies, into a folder. `what` names it in messages.

    If `mvn` fails, Ivy is tried before giving up.
    """
    ways: list[tuple[str, Callable[[], None]]] = []
    if mvn := shutil.which("mvn"):
        ways.append(("mvn", lambda: _by_mvn(mvn, coordinates, into, alone)))
    if ivy := ivy_jar():
        ways.append(("ivy", lambda: _by_ivy(ivy, coordinates, into, alone, progress)))
    failures, missing = [], False
    log = log_file(coordinates.artifact)
    # Neither tool protects its download folder against a second process.
    with lock("maven", progress):
        for name, fetch in ways:
            said_before = log.stat().st_size if log.exists() else 0
            try:
                with timed(f"fetching {what} by {name}", progress):
                    fetch()
                return
            except SetupError as error:
                failures.append(str(error))
                missing = missing or is_missing(coordinates, _after(log, said_before))
    if missing:
        raise NotPublished(f"{what}: the registry has no {coordinates}")
    reasons = "; ".join(failures) or "neither mvn nor pyspark's Ivy is installed"
    raise SetupError(f"{what} ({coordinates}) could not be fetched: {reasons}")


def is_missing(coordinates: Coordinates, said: str) -> bool:
    """Return whether a tool reported that the artifact does not exist, from the registry or from its cache."""
    jar = f"{coordinates.group}:{coordinates.artifact}:jar:{coordinates.version}"
    ivy = f"{coordinates.group}#{coordinates.artifact};{coordinates.version}"
    reports = (f"Could not find artifact {jar} ", f"{jar} was not found", f"{ivy}: not found")
    return any(text in said for text in reports)


def _after(log: Path, size: int) -> str:
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")


def ivy_jar() -> Path | None:
    """Return the Ivy inside pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(folder).glob("jars/ivy-*.jar")):
            return jar
    return None


def _by_mvn(mvn: str, coordinates: Coordinates, into: Path, alone: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="mvn-", dir=into) as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(
            _POM.format(
                group=coordinates.group,
                artifact=coordinates.artifact,
                version=coordinates.version,
                exclusions=_EXCLUDE_ALL if alone else "",
            )
        )
        # Lax Maven only warns about a wrong checksum; strict refuses the file.
        options = ["-B", "-ntp", "--strict-checksums", "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
        goal = f"{DEPENDENCY_PLUGIN}:copy-dependencies"
        external_tool.run([mvn, *options, "-f", pom, goal], log=coordinates.artifact, cwd=Path(folder))


def _by_ivy(ivy: Path, coordinates: Coordinates, into: Path, alone: bool, progress: Progress) -> None:
    executable = java(progress)
    with tempfile.TemporaryDirectory(prefix="ivy-", dir=into) as folder:
        start: list[str | Path] = [
            executable,
            f"-Divy.home={folder}",
            "-jar",
            ivy,
            "-cache",
            Path(folder) / "cache",
        ]
        wanted = ["-dependency", coordinates.group, coordinates.artifact, coordinates.version]
        # The configuration that Maven calls runtime; without it Ivy would also fetch tests and sources.
        scope = ["-confs", "default", *(["-notransitive"] if alone else []), "-types", "jar", "bundle"]
        pattern = f"{into}/[artifact]-[revision](-[classifier]).[ext]"
        command = [*start, *wanted, *scope, "-retrieve", pattern]
        external_tool.run(command, log=coordinates.artifact, cwd=Path(folder))
