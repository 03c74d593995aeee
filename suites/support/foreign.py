"""Brokers that are not Apache's: franz-go's kfake, built from suites/support/other_broker and run in a separate process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import SetupError
from harness.provision import external_tool
from harness.provision.toxiproxy import find_go
from harness.runtime.cache import provide, timed, to_stderr

MODULE = Path(__file__).parent / "other_broker"
GO_OLDEST = (1, 26)
_BINARY = "other-broker"


def trouble() -> str | None:
    """Return the reason why it cannot be built here, or None if it can."""
    found = find_go()
    if found is None:
        return "no Go on the path"
    numbers = tuple(int(part) for part in found[1].split(".")[:2])
    return (
        f"Go {found[1]} is too old; {GO_OLDEST[0]}.{GO_OLDEST[1]} is needed" if numbers < GO_OLDEST else None
    )


def other_broker() -> Path:
    """Return the program, built once; go.sum has the hashes of all its modules."""
    sources = b"".join((MODULE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    return provide("other-broker", hashlib.sha256(sources).hexdigest()[:12], _build, whole=_whole) / _BINARY


def _build(into: Path) -> None:
    found = find_go()
    if found is None:
        raise SetupError("the other broker cannot be built: no Go on the path")
    with tempfile.TemporaryDirectory(prefix="go-", dir=into) as scratch:
        env = {
            "CGO_ENABLED": "0",
            "GOPATH": f"{scratch}/path",
            "GOCACHE": f"{scratch}/cache",
            "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -modcacherw -trimpath -mod=readonly".strip(),
        }
        with timed("building another broker (franz-go's kfake), once", to_stderr):
            external_tool.run(
                [found[0], "build", "-o", into / _BINARY, "."], log="other-broker", env=env, cwd=MODULE
            )


def _whole(folder: Path) -> bool:
    return os.access(folder / _BINARY, os.X_OK)


@contextmanager
def running(*words: str) -> Iterator[str]:
    """Start it with these options and yield its bootstrap servers. It ends with the test, even if that is killed."""
    with subprocess.Popen(
        [other_broker(), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            bootstrap = process.stdout.readline().strip()
            assert bootstrap, "it did not start"
            yield bootstrap
        finally:
            process.stdin.close()
            process.wait(30)
