"""Other versions of the client library, each in its own folder, which workers put before the installed version."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

from harness.errors import SetupError, UsageError
from harness.provision import external_tool
from harness.runtime.cache import Progress, provide, timed, to_stderr

PACKAGE = "confluent-kafka"
_RELEASE = re.compile(r"\d+(\.\d+){1,3}(rc\d+)?")


def client_overlay(version: str, progress: Progress = to_stderr) -> Path | None:
    """Return the folder to put first on PYTHONPATH, fetched once; None if that version is installed."""
    if not _RELEASE.fullmatch(version):
        raise UsageError(f"{PACKAGE} {version}: a release is named by its numbers, such as {installed()}")
    if version == installed():
        return None
    tag = f"{PACKAGE}-{version}-{sys.implementation.cache_tag}"
    return provide(
        "client", tag, lambda into: _fetch(version, into, progress), whole=_whole, progress=progress
    )


def installed() -> str:
    return metadata.version(PACKAGE)


def command(version: str, into: Path) -> list[str | Path]:
    """Return the command that installs the wheel; building it would need a C compiler and librdkafka's headers."""
    return [
        *external_tool.pip_install(),
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        into,
        f"{PACKAGE}=={version}",
    ]


def _fetch(version: str, into: Path, progress: Progress) -> None:
    try:
        with timed(f"fetching {PACKAGE} {version}", progress):
            external_tool.run(command(version, into), log="client")
    except SetupError as error:
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{PACKAGE} {version} cannot be fetched: no such release, or no wheel of it for Python {python}: {error}"
        ) from error


def _whole(folder: Path) -> bool:
    return (folder / "confluent_kafka" / "__init__.py").is_file()
