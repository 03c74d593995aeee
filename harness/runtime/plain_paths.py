"""Folder names that Java, Kafka and Spark accept, and alternatives for other names.

Lists of Java and Spark cannot escape a separator inside an entry: a colon ends an entry of a class path, a comma an entry of
log.dirs and spark.local.dir. Python and the kernel accept any name, so only folders given to Java and Spark matter here.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from harness.errors import SetupError, UsageError

_PLAIN = re.compile(r"[A-Za-z0-9/._+@~-]*")
_USUAL_TEMP_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
# For entries of a class path, and for the options of an agent after its jar.
_NOT_FOR_JAVA = {":": "a colon", "=": "an equals sign", "\n": "a line break"}


def is_plain(path: Path) -> bool:
    """Return True if every tool accepts the path unchanged, also inside lists, URLs and option strings."""
    return _PLAIN.fullmatch(str(path)) is not None


def seen_from(folder: Path, path: Path) -> Path:
    """Return the path for a process that runs in `folder`: relative if its name is not plain."""
    return path if is_plain(path) else path.relative_to(folder)


def must_suit_java(path: Path, what: str, remedy: str) -> None:
    """Raise SetupError if Java cannot use jars below the path."""
    for character, name in _NOT_FOR_JAVA.items():
        if character in str(path):
            raise SetupError(f"{what} {path}: Java cannot use a folder with {name} in its name; {remedy}")


def must_be_plain(path: Path, what: str) -> None:
    """Raise UsageError if the path is not plain, for tools that accept plain names only."""
    if not is_plain(path):
        raise UsageError(f"{what} {path}: use a folder named with letters, digits, '.', '-' and '_' only")


def plain_temp_folder() -> Path:
    """Return the folder for temporary files; if its name is not plain, the first usual one that can be written."""
    try:
        chosen = Path(tempfile.gettempdir())
    except OSError as error:
        raise SetupError(
            f"no folder for temporary files can be written: {error}; set TMPDIR=FOLDER"
        ) from error
    if is_plain(chosen):
        return chosen
    for folder in map(Path, _USUAL_TEMP_FOLDERS):
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            print(
                f"onceproof: Spark cannot use the name of the folder {chosen}; its scratch goes to {folder}",
                file=sys.stderr,
            )
            return folder
    raise SetupError(
        f"TMPDIR={chosen}: Spark cannot use this name; set TMPDIR to a folder named with letters, digits, - and _"
    )
