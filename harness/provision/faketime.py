"""libfaketime, which shows a process another wall clock: the installed library, `LIBFAKETIME`, or Debian's package.

The package is fetched and unpacked into the cache folder, which needs no root and changes nothing else on the machine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from harness.errors import SetupError
from harness.provision import apt, external_tool
from harness.runtime.cache import Progress, lock, place_of, provide, timed, to_stderr

PACKAGE = "libfaketime"
BY_HAND = f"install {PACKAGE} or set LIBFAKETIME=FILE to its libfaketimeMT.so.1"
_LIBRARY = "libfaketimeMT.so.1"  # the variant for programs with threads, such as Java
_PLACES = ("usr/lib/*/faketime", "usr/lib/faketime", "usr/local/lib/faketime")
_VERSION = "debian"  # the version of this machine's Debian: apt offers no other


def faketime(progress: Progress = to_stderr) -> Path:
    """Return the library to preload. `LIBFAKETIME` takes precedence."""
    found = find_faketime()
    if found is not None:
        return found
    return (
        provide(PACKAGE, _VERSION, lambda into: _unpack(into, progress), whole=_whole, progress=progress)
        / _LIBRARY
    )


def find_faketime(root: Path = Path("/")) -> Path | None:
    """Return the library that `faketime` would return without fetching anything, or None."""
    if chosen := os.environ.get("LIBFAKETIME"):
        if not Path(chosen).is_file():
            raise SetupError(f"LIBFAKETIME={chosen} is not a file: {BY_HAND}, or unset it")
        return Path(chosen).absolute()
    installed = [library for place in _PLACES for library in sorted(root.glob(f"{place}/{_LIBRARY}"))]
    if installed:
        return installed[0]
    place = place_of(PACKAGE, _VERSION)
    return place / _LIBRARY if _whole(place) else None


def trouble() -> str | None:
    """Return why this machine can have no libfaketime; None if it has it or can fetch it. Fetches nothing."""
    try:
        return None if find_faketime() is not None else _why_not_fetched()
    except SetupError as error:
        return str(error)


def _why_not_fetched() -> str | None:
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    return f"{PACKAGE} cannot be fetched without {' and '.join(missing)}: {BY_HAND}" if missing else None


def _unpack(into: Path, progress: Progress) -> None:
    if why := _why_not_fetched():
        raise SetupError(why)
    with (
        tempfile.TemporaryDirectory(prefix="deb-", dir=into) as name,
        timed(f"fetching {PACKAGE} by apt-get", progress),
    ):
        scratch = Path(name)
        try:
            if apt.may_install():  # a new machine has no package lists yet, or old ones
                with lock("apt", progress):
                    external_tool.run(["apt-get", "-o", "DPkg::Lock::Timeout=300", "update"], log=PACKAGE)
            external_tool.run(["apt-get", "download", PACKAGE], log=PACKAGE, cwd=scratch)
            (package,) = scratch.glob("*.deb")
            external_tool.run(["dpkg-deb", "-x", package, scratch / "files"], log=PACKAGE)
            (library,) = (scratch / "files").rglob(_LIBRARY)
        except SetupError as error:
            raise SetupError(f"{PACKAGE} could not be fetched: {error}; by hand: {BY_HAND}") from error
        except ValueError:
            raise SetupError(
                f"{PACKAGE} does not contain exactly one {_LIBRARY}; by hand: {BY_HAND}"
            ) from None
        shutil.move(library, into / _LIBRARY)


def _whole(folder: Path) -> bool:
    return (folder / _LIBRARY).is_file()
