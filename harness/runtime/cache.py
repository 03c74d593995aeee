"""The cache folder: things that are fetched once per version, and are complete or absent.

A thing is built in a temporary sibling of its final folder and renamed into place, under its own lock. So two
simultaneous starts fetch it once, and a start that was killed half way leaves nothing that a later one could
mistake for the finished thing.

Programs are run from it, and lists in it name the processes and folders to remove after a crash. So it has to
belong to the user, and no other user may write to it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import SetupError
from harness.runtime.plain_paths import must_suit_java

Progress = Callable[[str], None]


def to_stderr(line: str) -> None:
    """Print one line of progress on stderr; stdout stays free for results."""
    print(f"onceproof: {line}", file=sys.stderr, flush=True)


def silent(line: str) -> None:
    """Print nothing."""


@contextmanager
def timed(what: str, progress: Progress) -> Iterator[None]:
    """Report that `what` begins, and how long it took when it has ended."""
    progress(f"{what} …")
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        progress(f"{what} … failed after {time.monotonic() - begun:.1f} s")
        raise
    progress(f"{what} … {time.monotonic() - begun:.1f} s")


def cache_dir() -> Path:
    """Return the cache folder: `ONCEPROOF_CACHE`, else `onceproof` in the user's cache folder. Not created here.

    Raises SetupError for a folder that belongs to another user or that others can write.
    """
    place = _place()
    must_suit_java(place, "the cache folder", "set ONCEPROOF_CACHE to another one")
    must_be_private(place)
    return place


def own_folder(name: str) -> Path:
    """Return a folder of this name in the cache folder, created if it is missing; private like the cache folder."""
    return _folder(cache_dir() / name)


def must_be_private(folder: Path) -> None:
    """Raise SetupError for a folder that another user could change. A folder that does not exist yet is fine."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SetupError(
            f"the cache folder {folder}: {error.strerror}; set ONCEPROOF_CACHE=FOLDER"
        ) from error
    user = os.geteuid()
    if found.st_uid != user:
        raise SetupError(
            f"the cache folder {folder} belongs to user {found.st_uid}, not to user {user}, and programs are run from "
            f"it: chown -R {user} {_place()}, or set ONCEPROOF_CACHE=FOLDER"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SetupError(
            f"the cache folder {folder} can be written by other users, and programs are run from it: "
            f"chmod -R go-w {_place()}, or set ONCEPROOF_CACHE=FOLDER"
        )
    for above in folder.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise SetupError(
                f"the cache folder {folder} can be replaced by other users: chmod o-w {above}, or set "
                "ONCEPROOF_CACHE=FOLDER"
            )


def _place() -> Path:
    if chosen := os.environ.get("ONCEPROOF_CACHE"):
        return Path(chosen).absolute()
    # By the XDG specification a relative path is ignored: it would be a different folder for each caller.
    if (caches := os.environ.get("XDG_CACHE_HOME", "")).startswith("/"):
        return Path(caches) / "onceproof"
    home = os.environ.get("HOME", "")
    if not home.strip("/") or not home.startswith("/"):
        raise SetupError(
            f"no home folder for the cache (HOME is {repr(home) if home else 'not set'}); set ONCEPROOF_CACHE=FOLDER"
        )
    return Path(home) / ".cache" / "onceproof"


def log_file(name: str) -> Path:
    """Return the log file of the tools that fetch `name`."""
    return own_folder("logs") / f"{name}.log"


def place_of(name: str, version: str) -> Path:
    """Return the folder of a finished thing, which may not exist yet."""
    place = cache_dir() / name / version
    must_be_private(place.parent)
    must_be_private(place)
    return place


def provide(
    name: str,
    version: str,
    build: Callable[[Path], None],
    *,
    whole: Callable[[Path], bool] = Path.is_dir,
    progress: Progress = to_stderr,
) -> Path:
    """Return the folder of `name` in `version`; `build` fills it first if it is missing or not `whole`.

    Costs a few file look-ups if the thing exists. Safe to call from several processes and threads
    at once: one builds, the others wait for it.
    """
    final = place_of(name, version)
    if final.is_dir() and whole(final):
        return final
    with lock(f"{name}-{version}", progress):
        if final.is_dir() and whole(final):
            return final
        # The lock makes this process the only builder, so unfinished folders here are from killed ones.
        for leftover in _folder(final.parent).glob(f".{version}.*.building"):
            shutil.rmtree(leftover, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=f".{version}.", suffix=".building", dir=final.parent))
        try:
            build(building)
            if not whole(building):
                raise SetupError(f"{name} {version} was fetched but is not complete; see {log_file(name)}")
            building.chmod(0o755)
            if final.exists():
                shutil.rmtree(final)
            building.rename(final)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return final


@contextmanager
def lock(name: str, progress: Progress = to_stderr) -> Iterator[None]:
    """Hold the lock `name` of the cache folder; the system releases it if the process dies."""
    path = own_folder("locks") / f"{name}.lock"
    with _writable(path), path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another start that is fetching {name} …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _folder(path: Path) -> Path:
    """Create a folder inside the cache folder, and the cache folder if it is missing; only this user can enter them."""
    top = _place()
    with _writable(path):
        if not top.exists():
            top.parent.mkdir(parents=True, exist_ok=True)
            top.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    must_be_private(path)
    return path


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(_place()):
            raise
        raise SetupError(
            f"the cache folder cannot be written: {path}: {error.strerror}; set ONCEPROOF_CACHE=FOLDER"
        ) from error
