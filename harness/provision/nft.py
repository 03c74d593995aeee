"""nft, which cuts the links between containers: the installed program, or Debian's package as root.

Only root may enter a container's network and set rules there, so fetching it without root would be useless.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.errors import SetupError
from harness.provision import apt
from harness.runtime.cache import Progress, to_stderr

PACKAGES = ("nftables",)
BY_HAND = f"install {PACKAGES[0]}"
_SYSTEM = "/usr/sbin:/sbin"  # not on every user's path


def nft(progress: Progress = to_stderr) -> Path:
    """Return the program; as root on Debian, install it if it is missing."""
    if find_nft() is None and apt.may_install():
        apt.install_first(PACKAGES, log="nft", there=find_nft, by_hand=BY_HAND, progress=progress)
    found = find_nft()
    if found is None:
        raise SetupError(f"there is no nft, which cuts links between containers; {BY_HAND}")
    return found


def find_nft() -> Path | None:
    found = shutil.which("nft") or shutil.which("nft", path=_SYSTEM)
    return Path(found) if found else None
