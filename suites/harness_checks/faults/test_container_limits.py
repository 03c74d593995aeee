"""Limits on a real container: the kernel reports each, it bites, and it is gone after its removal."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.models.containers import Container

from harness.clusters.containers.container import limit_cpu
from harness.clusters.containers.host import host_pid
from harness.clusters.containers.labels import labels, sweep_labelled
from harness.machine.cgroup import Home, home_of
from harness.machine.cgroup_io import Io, IoGroup, disk_of
from harness.machine.cgroup_memory import MemoryGroup
from harness.provision.docker.engine import engine, trouble

NO_ENGINE = trouble()
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(NO_ENGINE is not None, reason=str(NO_ENGINE)),
    pytest.mark.skipif(
        not Path("/bin").is_symlink(), reason="the image borrows /usr, which has all programs"
    ),
]

MIB = 1 << 20
IMAGE = "onceproof/borrowed:1"
SPIN = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A container with this machine's programs, and a folder of this machine's disk at /data."""
    client = engine().client()
    sweep_labelled(client)
    client.api.import_image_from_data(_links_to_usr(), *IMAGE.split(":"))
    folder = tmp_path_factory.mktemp("data")
    made = client.containers.run(
        IMAGE,
        ["/bin/sleep", "600"],
        detach=True,
        network_mode="none",
        labels=labels(folder),
        volumes={"/usr": {"bind": "/usr", "mode": "ro"}, str(folder): {"bind": "/data", "mode": "rw"}},
    )
    try:
        yield made
    finally:
        made.remove(force=True)
        client.close()


@pytest.fixture
def folder(container: Container) -> Path:
    container.reload()
    return next(Path(m["Source"]) for m in container.attrs["Mounts"] if m["Destination"] == "/data")


def _links_to_usr() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
    return file.getvalue()


def run(container: Container, command: str) -> tuple[float, int | None]:
    begun = time.monotonic()
    code, _output = container.exec_run(["/bin/sh", "-c", command])
    return time.monotonic() - begun, code


def home(container: Container, controller: str) -> Home:
    """Return the control group of the container."""
    pid = host_pid(container)
    assert pid is not None
    found = home_of(pid, controller)
    assert found is not None
    return found


def cpu_limit(container: Container) -> float | None:
    """Return the processor limit that the kernel reports."""
    group = home(container, "cpu")
    if group.version == 2:
        quota, period = (group.folder / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    quota_us, period_us = (
        int((group.folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii")) for name in ("quota", "period")
    )
    return None if quota_us < 0 else quota_us / period_us


def cpu_used(container: Container, command: str) -> float:
    """Return the share of one processor that the command used; other load on this machine changes its time, not the share."""
    _code, output = container.exec_run(["/bin/bash", "-c", f"TIMEFORMAT='%R %U %S'; time {{ {command}; }}"])
    assert isinstance(output, bytes)
    real, user, system = map(float, output.split()[-3:])
    return (user + system) / real


def test_a_processor_limit_slows_the_container(container: Container) -> None:
    assert cpu_limit(container) is None
    limit_cpu(container, 0.02)
    assert cpu_limit(container) == pytest.approx(0.02)
    little = cpu_used(container, SPIN)
    limit_cpu(container, None)
    assert cpu_limit(container) is None
    much = cpu_used(container, SPIN)
    print(f"\n{little:.2f} of a processor, {much:.2f} without the limit")
    assert little < 0.04
    assert much > little


def test_a_memory_limit_reclaims_the_page_cache(container: Container) -> None:
    """Reclaimable memory is taken back, and new requests wait for it. A restart makes a new group without a limit."""
    assert run(container, "dd if=/dev/zero of=/data/cached bs=1M count=32")[1] == 0
    memory = MemoryGroup(home(container, "memory"))
    before = memory.look()
    assert before.limit_mb is None
    assert before.cache_mb > 16
    memory.squeeze(8)
    squeezed = memory.look()
    assert squeezed.limit_mb is not None
    assert squeezed.limit_mb == pytest.approx(before.has_mb - before.cache_mb + 8, abs=1)
    assert run(container, "dd if=/dev/zero of=/data/cached bs=1M count=64 conv=fsync")[1] == 0, (
        "page cache is given back"
    )
    during = memory.look()
    print(f"\n{before}, squeezed {squeezed}, under load {during}")
    assert during.refused > squeezed.refused
    assert during.has_mb <= squeezed.limit_mb + 1
    memory.release()
    assert memory.look().limit_mb is None
    assert run(container, "dd if=/dev/zero of=/dev/null bs=64M count=1")[1] == 0
    memory.squeeze(8)
    container.restart(timeout=0)
    assert MemoryGroup(home(container, "memory")).look().limit_mb is None


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (Io.WRITE, "dd if=/dev/zero of=/data/file bs=64k count=32 oflag=direct"),
        (Io.WRITE, "dd if=/dev/zero of=/data/file bs=64k count=32 conv=fsync"),
        (Io.READ, "dd if=/data/file of=/dev/null bs=64k count=32 iflag=direct"),
    ],
    ids=["direct writes", "fsync", "reads"],
)
def test_a_disk_limit_slows_reads_and_writes(
    container: Container, folder: Path, kind: Io, command: str
) -> None:
    """2 MiB at 0.5 MiB a second."""
    (folder / "file").write_bytes(bytes(2 * MIB))
    group = IoGroup(home(container, "blkio"), disk_of(folder))
    assert group.limited(kind) is None
    group.limit(kind, MIB // 2)
    assert group.limited(kind) == MIB // 2
    slow_s, _ = run(container, command)
    group.limit(kind, None)
    assert group.limited(kind) is None
    fast_s, _ = run(container, command)
    print(f"\n{kind}: {slow_s:.2f} s, {fast_s:.2f} s without the limit")
    assert slow_s > 3.0
    assert fast_s < slow_s


def test_limits_of_one_kind_leave_the_others_alone(container: Container, folder: Path) -> None:
    """The engine writes into the same groups when it limits the processors or pauses."""
    group, memory = IoGroup(home(container, "blkio"), disk_of(folder)), MemoryGroup(home(container, "memory"))
    group.limit(Io.WRITE, MIB)
    memory.squeeze(8)
    limited_mb = memory.look().limit_mb
    limit_cpu(container, 0.5)
    container.pause()
    container.unpause()
    assert (group.limited(Io.WRITE), memory.look().limit_mb) == (MIB, limited_mb)
    limit_cpu(container, None)
    group.limit(Io.WRITE, None)
    memory.release()
    assert (group.limited(Io.WRITE), memory.look().limit_mb) == (None, None)
