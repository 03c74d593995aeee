"""The doctor's looks at the machine and its kernel: permissions of this process, memory and disk space."""

from __future__ import annotations

import os
import resource
import shutil
import socket
from pathlib import Path

from harness.machine.answers import LOOK_TIMEOUT_S, Answer, no, yes
from harness.provision import external_tool
from harness.provision.fuse import find_fuse
from harness.runtime import environment

MEMORY_NEEDED_GIB = 3.0
DISK_NEEDED_GIB = 2.0
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21


def docker_engine() -> Answer:
    """Look for an engine at DOCKER_HOST or at the usual socket, or whether one can be started."""
    found = _running_engine()
    if found.ok or os.environ.get("DOCKER_HOST"):
        return found
    from harness.provision.docker.engine import why_none_can_be_started  # loads Docker's library

    why = why_none_can_be_started()
    return no(f"{found.reason}; {why}") if why else yes("none runs; onceproof starts one when it is needed")


def _running_engine() -> Answer:
    at = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    scheme, _, place = at.partition("://")
    try:
        if scheme == "unix":
            link = socket.socket(socket.AF_UNIX)
            link.settimeout(LOOK_TIMEOUT_S)
            link.connect(place)
        elif scheme == "tcp":
            host, _, port = place.partition(":")
            link = socket.create_connection((host, int(port or 2375)), timeout=LOOK_TIMEOUT_S)
        else:
            return no(f"{at}: only unix and tcp addresses can be checked")
        with link:
            link.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            answer = link.recv(4096)
    except (OSError, ValueError) as error:
        return no(f"no answer at {at}: {getattr(error, 'strerror', None) or error}")
    return yes(f"answers at {at}") if b" 200 " in answer[:20] else no(f"{at} answers, but not as Docker does")


def fuse() -> Answer:
    """Look for the device, the library and the permission to mount."""
    if not Path("/dev/fuse").exists():
        return no("no /dev/fuse")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return no("/dev/fuse may not be opened")
    if not find_fuse():
        return no("no libfuse3 (Debian: libfuse3-3)")
    if not _has_capability(_CAP_SYS_ADMIN):
        return no("CAP_SYS_ADMIN is missing: no mount, and no mount namespace of another process to enter")
    return yes("/dev/fuse, libfuse3 and the permission to mount")


def net_admin() -> Answer:
    """Look at the effective capability of this process."""
    return (
        yes("CAP_NET_ADMIN is effective")
        if _has_capability(_CAP_NET_ADMIN)
        else no("CAP_NET_ADMIN is missing")
    )


def nftables() -> Answer:
    """Look for the nft command and the permission to list rules."""
    found = shutil.which("nft", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")
    if not found:
        return no("no nft on the path (Debian: nftables)")
    if not _has_capability(_CAP_NET_ADMIN):
        return no(f"{found}, but CAP_NET_ADMIN is missing")
    listed = external_tool.output([found, "list", "tables"], timeout_s=LOOK_TIMEOUT_S)
    return yes(found) if listed is not None else no(f"{found} cannot list tables in this kernel")


def loopback() -> Answer:
    """Look whether any address of 127.0.0.0/8 can be bound, as the link mesh does."""
    for address in ("127.0.0.1", "127.201.11.2"):
        try:
            with socket.socket() as probe:
                probe.bind((address, 0))
        except OSError as error:
            return no(f"{address} cannot be bound: {error.strerror}")
    return yes("all of 127.0.0.0/8 can be bound")


def memory() -> Answer:
    """Look at the memory that is available now without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            gib = int(line.split()[1]) / 2**20
            reason = f"{gib:.1f} GiB available"
            return (
                yes(reason)
                if gib >= MEMORY_NEEDED_GIB
                else no(f"{reason}, {MEMORY_NEEDED_GIB:.0f} are needed")
            )
    return no("/proc/meminfo has no MemAvailable")


def open_files() -> Answer:
    """Look at the hard limit: the soft limit is raised to it at every start."""
    why = environment.too_few_open_files()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return no(why) if why else yes("unlimited" if hard == resource.RLIM_INFINITY else f"up to {hard}")


def cores() -> Answer:
    """Look at the cores that this process may use."""
    usable = len(os.sched_getaffinity(0))
    return yes(f"{usable}") if usable >= 2 else no(f"{usable}, 2 are needed for the promised times")


def disk(folder: Path, needed_gib: float = DISK_NEEDED_GIB) -> Answer:
    """Look at the free space where `folder` is or would be, and whether it is writable."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())
    if not os.access(there, os.W_OK):
        return no(f"{there} cannot be written")
    gib = shutil.disk_usage(there).free / 2**30
    reason = f"{gib:.1f} GiB free in {folder.absolute()}"
    return yes(reason) if gib >= needed_gib else no(f"{reason}, {needed_gib:.0f} are needed")


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
