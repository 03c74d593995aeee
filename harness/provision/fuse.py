"""libfuse, for FUSE file systems under brokers: the installed library, or Debian's package as root.

Only root may mount and enter the mount, so fetching it without root would be useless.
"""

from __future__ import annotations

from pathlib import Path

from harness.provision import apt
from harness.runtime.cache import Progress, to_stderr

PACKAGES = ("libfuse3-3", "libfuse3-4")
BY_HAND = f"install {PACKAGES[0]}"


def fuse(progress: Progress = to_stderr) -> bool:
    """Return whether the library is there; as root on Debian, install it if the kernel has FUSE."""
    if not find_fuse() and Path("/dev/fuse").exists() and apt.may_install():
        apt.install_first(PACKAGES, log="fuse", there=find_fuse, by_hand=BY_HAND, progress=progress)
    return find_fuse()


def find_fuse(root: Path = Path("/")) -> bool:
    return any(root.glob("usr/lib/*/libfuse3.so.*"))
