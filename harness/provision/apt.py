"""Debian packages, for users who may install them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

from harness.errors import SetupError
from harness.provision import external_tool
from harness.runtime.cache import Progress, lock, timed

LOOK_UP_TIMEOUT_S = (
    120.0  # apt-cache reads all package lists: a second on an idle machine, 17 s seen on a busy one
)


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_first(
    packages: Sequence[str], *, log: str, there: Callable[[], object], by_hand: str, progress: Progress
) -> None:
    """Install the first of the packages that this Debian has, unless another process did it meanwhile."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    with lock("apt", progress):
        if there():
            return
        with timed(f"installing {packages[0]} by apt-get", progress):
            try:
                external_tool.run(["apt-get", *wait, "update"], log=log, env=quiet)
                for package in packages:
                    if external_tool.output(["apt-cache", "show", package], timeout_s=LOOK_UP_TIMEOUT_S):
                        install = ["apt-get", *wait, "install", "-y", "--no-install-recommends", package]
                        # An interrupted dpkg would have to be repaired by hand.
                        external_tool.run(install, log=log, env=quiet, outlives_us=True)
                        return
                raise SetupError("not in the package lists of this machine")
            except SetupError as error:
                raise SetupError(f"{packages[0]} could not be installed: {error}; {by_hand}") from error
