"""Limits on a real container: each is told by the kernel, bites, and is gone when it was taken away."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.models.containers import Container

from harness.clusters._container_limits import (
    Io,
    cpu_limit,
    disk_of,
    io_limit,
    limit_cpu,
    limit_io,
    limit_memory,
    memory_limit,
)
from harness.clusters._labels import labels, sweep_labelled
from harness.errors import FaultError
from harness.provision.engine import engine, trouble

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
    """It has this machine's programs, and a folder of this machine's disk at /data."""
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


def cpu_used(container: Container, command: str) -> float:
    """Of one processor, while it ran: what others on this machine do changes the time, not the share."""
    _code, output = container.exec_run(["/bin/bash", "-c", f"TIMEFORMAT='%R %U %S'; time {{ {command}; }}"])
    assert isinstance(output, bytes)
    real, user, system = map(float, output.split()[-3:])
    return (user + system) / real


def test_the_processors(container: Container) -> None:
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


def test_the_memory(container: Container) -> None:
    """What can be taken back is, and the rest is not given: who wants it is killed."""
    assert memory_limit(container) is None
    limit_memory(container, 16 * MIB)
    assert memory_limit(container) == 16 * MIB
    wanting = "dd if=/dev/zero of=/dev/null bs=64M count=1"
    assert run(container, wanting)[1] == 137
    assert run(container, "dd if=/dev/zero of=/data/cached bs=1M count=64")[1] == 0, (
        "page cache is given back"
    )
    container.restart(timeout=0)
    assert memory_limit(container) == 16 * MIB, "it outlives a restart"
    limit_memory(container, None)
    assert memory_limit(container) is None
    assert run(container, wanting)[1] == 0


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (Io.WRITE, "dd if=/dev/zero of=/data/file bs=64k count=32 oflag=direct"),
        (Io.WRITE, "dd if=/dev/zero of=/data/file bs=64k count=32 conv=fsync"),
        (Io.READ, "dd if=/data/file of=/dev/null bs=64k count=32 iflag=direct"),
    ],
    ids=["direct writes", "fsync", "reads"],
)
def test_the_disk(container: Container, folder: Path, kind: Io, command: str) -> None:
    """2 MiB at 0.5 MiB a second."""
    (folder / "file").write_bytes(bytes(2 * MIB))
    assert io_limit(container, kind, folder) is None
    limit_io(container, kind, folder, MIB // 2)
    assert io_limit(container, kind, folder) == MIB // 2
    slow_s, _ = run(container, command)
    limit_io(container, kind, folder, None)
    assert io_limit(container, kind, folder) is None
    fast_s, _ = run(container, command)
    print(f"\n{kind}: {slow_s:.2f} s, {fast_s:.2f} s without the limit")
    assert slow_s > 3.0
    assert fast_s < slow_s


def test_what_is_on_no_disk_cannot_be_limited() -> None:
    with pytest.raises(FaultError, match="/proc is on no disk"):
        disk_of(Path("/proc"))


def test_a_container_that_does_not_run_is_named(container: Container) -> None:
    container.kill()
    container.wait()
    with pytest.raises(FaultError, match=f"{container.name} cannot be limited: it does not run"):
        cpu_limit(container)
    container.start()
