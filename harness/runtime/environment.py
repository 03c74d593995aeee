"""Prepare the process of a command, once and before anything else: limits, locale, paths."""

from __future__ import annotations

import os
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

from harness.errors import SetupError

NEWEST_PYTHON = (3, 13)  # newer ones are not tested
OPEN_FILES_WANTED = 8192
OPEN_FILES_NEEDED = 1024  # Spark's JVM alone has over 300 jars open


def prepare() -> None:
    """Prepare this process for all commands; raise SetupError if that fails."""
    raise_open_files()
    if hasattr(sys.stdout, "reconfigure"):
        # A file name that cannot be encoded in this locale must not end a command that prints it.
        sys.stdout.reconfigure(errors="backslashreplace")
    if chosen := os.environ.get("ONCEPROOF_CACHE"):
        os.environ["ONCEPROOF_CACHE"] = str(Path(chosen).absolute())  # workers run in another folder
    # Java encodes file names by the locale; without a locale it can only open ASCII names.
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    if sys.getfilesystemencoding() == "utf-8" and not re.search(r"utf-?8", locale, re.IGNORECASE):
        os.environ["LC_ALL"] = "C.UTF-8"


def raise_open_files() -> None:
    """Raise the limit of open files to OPEN_FILES_WANTED, or to the hard limit if that is lower; children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def need_open_files() -> None:
    """Raise SetupError if brokers and Spark could not open their files."""
    raise_open_files()
    if why := too_few_open_files():
        raise SetupError(f"{why}; raise it with: ulimit -Hn 4096 (as root), or in /etc/security/limits.conf")


def too_few_open_files() -> str | None:
    """Return the reason in words, or None if the limit is high enough."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_NEEDED:
        return None
    return f"the hard limit of open files is {hard} (ulimit -Hn), and at least {OPEN_FILES_NEEDED} are needed"


def untried_python() -> str | None:
    """Return a note if this Python is newer than the tested ones, else None."""
    if sys.version_info[:2] <= NEWEST_PYTHON:
        return None
    return f"newer than {_dotted(NEWEST_PYTHON)}, the newest tested version"


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
