"""The jars of a Kafka broker with a log binding, by Maven coordinates or from the folder in `KAFKA_LIBS`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.errors import SetupError, UsageError
from harness.provision.maven import Coordinates, NotPublished, fetch_jars
from harness.runtime.cache import Progress, place_of, provide, to_stderr

KAFKA_VERSION = "4.3.1"
LAST_WITH_ZOOKEEPER = "3.9.2"
BROKER_JAR = "kafka_2.13-*.jar"
BY_HAND = "put the jars of a Kafka (2.13) broker into a folder and set KAFKA_LIBS=FOLDER"
UNKNOWN_VERSION = "unknown"
_LIST = "jars.txt"
_FIRST_RELOAD4J = "1.7.36"
_RELEASE = re.compile(r"\d+(\.\d+){2,3}")  # four numbers before Kafka 1.0


def kafka_libs(
    version: str = KAFKA_VERSION, progress: Progress = to_stderr, *, exactly: bool = False
) -> Path:
    """Return the folder of broker jars; as a class path it is `FOLDER/*`. `KAFKA_LIBS` takes precedence, whatever its version.

    `exactly`: it must be the requested version, as for clusters with several versions.
    """
    if chosen := os.environ.get("KAFKA_LIBS"):
        folder = Path(chosen).absolute()
        if not any(folder.glob(BROKER_JAR)):
            raise SetupError(f"KAFKA_LIBS={chosen} has no {BROKER_JAR} inside: {BY_HAND}, or unset it")
        if exactly and version_of(folder) != version:
            raise SetupError(
                f"Kafka {version} was requested, but KAFKA_LIBS={chosen} has {version_of(folder)}; unset it"
            )
        return folder
    must_be_release(version)
    return provide(
        "kafka", version, lambda into: _build(version, into, progress), whole=_whole, progress=progress
    )


def kafka_tools(version: str = KAFKA_VERSION, progress: Progress = to_stderr) -> Path:
    """Return the folder with the jars of Kafka's command line tools, which a broker does not need."""
    tools = Coordinates("org.apache.kafka", "kafka-tools", version)

    def build(into: Path) -> None:
        fetch_jars(f"Kafka {version} tools", tools, into, progress=progress)

    def whole(place: Path) -> bool:
        return any(place.glob("kafka-tools-*.jar"))

    return provide("kafka-tools", version, build, whole=whole, progress=progress)


def kafka_clients(version: str = KAFKA_VERSION, progress: Progress = to_stderr) -> Path:
    """Return a folder with the Java client of this release and all that it needs."""
    if version == KAFKA_VERSION and (libs := find_kafka_libs(version)) is not None:
        return libs  # the client is among the jars of a broker
    clients = Coordinates("org.apache.kafka", "kafka-clients", version)

    def build(into: Path) -> None:
        fetch_jars(f"Kafka {version} client", clients, into, progress=progress)

    def whole(place: Path) -> bool:
        return any(place.glob("kafka-clients-*.jar"))

    return provide("kafka-clients", version, build, whole=whole, progress=progress)


def find_kafka_libs(version: str = KAFKA_VERSION) -> Path | None:
    """Return the folder that `kafka_libs` would return without fetching anything, or None."""
    if os.environ.get("KAFKA_LIBS"):
        return kafka_libs(version)
    place = place_of("kafka", version)
    return place if _whole(place) else None


def version_of(libs: Path) -> str:
    """Return the Kafka version of a folder of jars, from the name of its broker jar."""
    jars = sorted(libs.glob(BROKER_JAR))
    return jars[-1].stem.removeprefix("kafka_2.13-") if jars else UNKNOWN_VERSION


def must_be_release(version: str) -> None:
    if not _RELEASE.fullmatch(version):
        raise UsageError(f"Kafka {version}: a release is named by its numbers, such as {KAFKA_VERSION}")


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the version as numbers, for comparing; a version without numbers sorts first."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _build(version: str, into: Path, progress: Progress) -> None:
    broker = Coordinates("org.apache.kafka", "kafka_2.13", version)
    try:
        fetch_jars(f"Kafka {version} jars", broker, into, progress=progress)
        binding = log_binding(into)
        # reload4j itself comes only with its binding; log4j is already among the broker's jars.
        with_log4j = binding.artifact.startswith("log4j")
        fetch_jars(f"log binding {binding.version}", binding, into, alone=with_log4j, progress=progress)
    except NotPublished as error:
        raise SetupError(f"Kafka {version} does not exist: the registry has no {broker}") from error
    except SetupError as error:
        raise SetupError(f"{error}; by hand: {BY_HAND}") from error
    (into / _LIST).write_text("".join(f"{jar.name}\n" for jar in sorted(into.glob("*.jar"))))


def log_binding(libs: Path) -> Coordinates:
    """Return the slf4j binding for the logging library among these jars; without it brokers log nothing."""
    for jar in libs.glob("log4j-core-*.jar"):
        return Coordinates(
            "org.apache.logging.log4j", "log4j-slf4j-impl", jar.stem.removeprefix("log4j-core-")
        )
    for jar in libs.glob("slf4j-api-*.jar"):
        # Before Kafka 4 it is reload4j, whose binding follows the version of slf4j; older ones fit a binding of 1.7 too.
        api = jar.stem.removeprefix("slf4j-api-")
        version = api if numbers_of(api) >= numbers_of(_FIRST_RELOAD4J) else _FIRST_RELOAD4J
        return Coordinates("org.slf4j", "slf4j-reload4j", version)
    raise SetupError(f"there is no logging library among the Kafka jars in {libs}")


def _whole(libs: Path) -> bool:
    """Return whether all fetched jars are still there: cleaners of cache folders remove single files."""
    try:
        names = (libs / _LIST).read_text().split()
    except OSError:
        return False
    return any(libs.glob(BROKER_JAR)) and all((libs / name).is_file() for name in names)
