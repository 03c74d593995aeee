"""A Java for brokers and Spark: from `JAVA_HOME`, the path, the usual folder, or apt as root."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from harness.errors import SetupError
from harness.provision import apt, external_tool
from harness.runtime.cache import Progress, to_stderr

OLDEST, NEWEST = 17, 25
TRIED = (17, 25)  # long-term releases that our tests run on; releases in between have no known problems
JVM_FOLDER = Path("/usr/lib/jvm")
PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
BY_HAND = f"install {PACKAGES[0]} (or any Java {OLDEST} to {NEWEST}) or set JAVA_HOME to one"


def java(progress: Progress = to_stderr) -> Path:
    """Return the java executable, links resolved, so that its folder's parent is a valid JAVA_HOME."""
    found = find_java()
    if found is None and apt.may_install():
        apt.install_first(PACKAGES, log="java", there=find_java, by_hand=BY_HAND, progress=progress)
        found = find_java()
    if found is None:
        raise SetupError(f"no usable Java on this machine: {BY_HAND}")
    return found


def find_java() -> Path | None:
    """Return a suitable installed Java, or None. Raises SetupError if JAVA_HOME names an unsuitable one."""
    if home := os.environ.get("JAVA_HOME"):
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise SetupError(f"JAVA_HOME={home} has no bin/java: {BY_HAND}")
        version = java_version(executable)
        if why := unfit(version, chosen=True):
            raise SetupError(f"JAVA_HOME={home} is {why}: {BY_HAND}")
        return executable.resolve()
    on_path = shutil.which("java")
    for candidate in [Path(on_path)] if on_path else []:
        real = _real(candidate)
        if real and not unfit(java_version(real)):
            return real
    fitting = [path for path in JVM_FOLDER.glob("*/bin/java") if not unfit(java_version(path))]
    # Everything was measured on 17, so the oldest suitable version comes first.
    fitting.sort(key=lambda path: (_numbers(java_version(path) or ""), path))
    return fitting[0].resolve() if fitting else None


def unfit(version: str | None, *, chosen: bool = False) -> str | None:
    """Return why this version cannot be used, or None if it can; a `chosen` version may be newer than the tested ones."""
    if version is None:
        return "not a Java that answers"
    numbers = _numbers(version)
    if not numbers or numbers[0] < OLDEST:
        return f"Java {version}, older than {OLDEST}"
    if numbers[0] == 25 and numbers < (25, 0, 3):
        return f"Java {version}, on which Spark fails (25.0.0 to 25.0.2)"
    if numbers[0] > NEWEST and not chosen:
        return f"Java {version}, newer than {NEWEST}"
    return None


def untried(version: str | None) -> str | None:
    """Return a note on a usable version that our tests do not run on, otherwise None."""
    numbers = _numbers(version or "")
    if not numbers or numbers[0] in TRIED:
        return None
    return f"not one of the tested versions ({', '.join(map(str, TRIED))})"


def java_version(executable: Path) -> str | None:
    """Return the version, from the `release` file of its folder (no JVM is started), otherwise by running it."""
    release = executable.resolve().parent.parent / "release"
    try:
        stated = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        stated = None
    if stated:
        return stated[1]
    answer = external_tool.output([executable, "-version"]) or ""
    said = re.search(r'version "([^"]+)"', answer)
    return said[1] if said else None


def _real(candidate: Path) -> Path | None:
    """Return the executable inside its Java home, also if the one on the path is a script that starts it."""
    real = candidate.resolve()
    if (real.parent.parent / "release").is_file() or (
        (real.parent.parent / "lib").is_dir() and real.name == "java"
    ):
        return real
    answer = external_tool.output([candidate, "-XshowSettings:properties", "-version"]) or ""
    said = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    return Path(said[1].strip()) / "bin" / "java" if said else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
