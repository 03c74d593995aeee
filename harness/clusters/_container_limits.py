"""Limits on what a container may use, each with what the kernel tells of it now. None takes a limit away.

Processors and memory are limited by the engine, so that the limits outlive a restart of the container. It has no way to
limit reads and writes of a container that runs: that is written into the container's control group, and is gone after a
restart. It slows what goes to the disk at once: reads that are not in memory, direct writes, fsync.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from docker.errors import DockerException
from docker.models.containers import Container

from harness.clusters._control_group import Home, home_of
from harness.clusters._yard import host_pid
from harness.errors import FaultError

_PERIOD_US = 100_000
_DISKS = Path("/sys/dev/block")


class Io(StrEnum):
    READ = "read"
    WRITE = "write"


_FIELDS_2 = {Io.READ: "rbps", Io.WRITE: "wbps"}


def limit_cpu(container: Container, share: float | None) -> None:
    """To this share of one processor."""
    quota_us = -1 if share is None else max(1000, round(share * _PERIOD_US))
    with _by_engine(container):
        container.update(cpu_period=_PERIOD_US, cpu_quota=quota_us)


def cpu_limit(container: Container) -> float | None:
    home = _home(container, "cpu")
    if home.version == 2:
        quota, period = (home.folder / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    quota_us = _number(home.folder / "cpu.cfs_quota_us")
    return None if quota_us < 0 else quota_us / _number(home.folder / "cpu.cfs_period_us")


def limit_memory(container: Container, size: int | None) -> None:
    """To so many bytes, page cache included, and no swap besides. More than can be taken back kills a process there."""
    most = memory_of_machine() if size is None else size  # the engine knows no way back to none
    with _by_engine(container):
        container.update(mem_limit=most, memswap_limit=most)


def memory_limit(container: Container) -> int | None:
    home = _home(container, "memory")
    if home.version == 2:
        told = (home.folder / "memory.max").read_text(encoding="ascii").strip()
        size = memory_of_machine() if told == "max" else int(told)
    else:
        size = _number(home.folder / "memory.limit_in_bytes")
    return size if size < memory_of_machine() else None


def limit_io(container: Container, io: Io, folder: Path, rate: int | None) -> None:
    """To so many bytes a second, on the disk on which the folder is."""
    home, disk = _home(container, "blkio"), disk_of(folder)
    try:
        if home.version == 2:
            (home.folder / "io.max").write_text(f"{disk} {_FIELDS_2[io]}={rate or 'max'}\n", encoding="ascii")
        else:
            (home.folder / _file_1(io)).write_text(f"{disk} {rate or 0}\n", encoding="ascii")
    except OSError as error:
        raise FaultError(f"{io}s of {container.name} on {folder} cannot be limited: {error}") from error


def io_limit(container: Container, io: Io, folder: Path) -> int | None:
    home, disk = _home(container, "blkio"), disk_of(folder)
    file = home.folder / ("io.max" if home.version == 2 else _file_1(io))
    for line in file.read_text(encoding="ascii").splitlines():
        device, *words = line.split()
        if device == disk and home.version == 1:
            return int(words[0])
        if device == disk:
            told = dict(word.split("=") for word in words)[_FIELDS_2[io]]
            return None if told == "max" else int(told)
    return None


def disk_of(folder: Path) -> str:
    """The whole disk, as numbers: a part of one cannot be limited."""
    device = folder.stat().st_dev
    known = _DISKS / f"{os.major(device)}:{os.minor(device)}"
    if not known.exists():
        raise FaultError(f"{folder} is on no disk, so its reads and writes cannot be limited")
    whole = known.resolve()
    if (whole / "partition").exists():
        whole = whole.parent
    return (whole / "dev").read_text(encoding="ascii").strip()


def memory_of_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _file_1(io: Io) -> str:
    return f"blkio.throttle.{io}_bps_device"


@contextmanager
def _by_engine(container: Container) -> Iterator[None]:
    try:
        yield
    except DockerException as error:
        raise FaultError(f"{container.name} cannot be limited: {error}") from error


def _home(container: Container, controller: str) -> Home:
    pid = host_pid(container)
    home = home_of(pid, controller) if pid is not None else None
    if home is None:
        why = "it does not run" if pid is None else f"this kernel has no control group for {controller}"
        raise FaultError(f"{container.name} cannot be limited: {why}")
    return home


def _number(file: Path) -> int:
    return int(file.read_text(encoding="ascii"))
