"""A Docker engine: a running one (`DOCKER_HOST` or the usual socket), otherwise, as root on Debian, a private one."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import DockerException

from harness.errors import SetupError
from harness.provision import apt
from harness.provision.docker.private_engine import PROGRAMS_PATH, OwnEngine
from harness.runtime.cache import Progress, to_stderr

PACKAGES = ("docker.io",)
USUAL_SOCKET = Path("/var/run/docker.sock")
BY_HAND = "start Docker, or set DOCKER_HOST to an engine that you may use"
_CALL_LIMIT_S = 120.0
_MOUNTING, _NETWORKS = 21, 12  # CAP_SYS_ADMIN, CAP_NET_ADMIN


@dataclass(frozen=True)
class Engine:
    """An engine that answers; `own` if this process started it."""

    url: str
    own: OwnEngine | None = None

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=self.url, timeout=int(_CALL_LIMIT_S))


_lock = threading.Lock()
_own: OwnEngine | None = None


def engine(progress: Progress = to_stderr) -> Engine:
    """Return a running engine, or start one; raise SetupError of one line if neither is possible."""
    with _lock:
        if running := find_engine():
            return running
        if why := why_none_can_be_started():
            raise SetupError(f"no Docker engine: {why}; {BY_HAND}")
        return _started(progress)


def find_engine() -> Engine | None:
    """Return an engine that is already running. Raises SetupError if DOCKER_HOST names one that does not answer."""
    if named := os.environ.get("DOCKER_HOST"):
        if why := _silence(named):
            raise SetupError(
                f"DOCKER_HOST={named} does not answer: {why}; start that engine or unset DOCKER_HOST"
            )
        return Engine(named)
    if _own is not None and _own.runs():
        return Engine(_own.url, _own)
    usual = f"unix://{USUAL_SOCKET}"
    return Engine(usual) if USUAL_SOCKET.exists() and not _silence(usual) else None


def why_none_can_be_started() -> str | None:
    """Return why this user cannot start an engine on this machine; None if they can."""
    if os.geteuid() != 0:
        denied = USUAL_SOCKET.exists() and not os.access(USUAL_SOCKET, os.R_OK | os.W_OK)
        running = f"this user may not use {USUAL_SOCKET}" if denied else "none runs"
        return f"{running}, and only root can start one"
    if not _may(_MOUNTING) or not _may(_NETWORKS):
        return "none runs, and this root may not mount or make networks (a container without privileges?)"
    if _dockerd() is None and not apt.may_install():
        return "none runs, dockerd is not installed, and this machine is not Debian"
    return None


def trouble() -> str | None:
    """Return in one line why clusters of containers are not possible here; None if they are. Starts nothing."""
    if find_engine() is not None:
        return None
    why = why_none_can_be_started()
    return f"no Docker engine: {why}; {BY_HAND}" if why else None


def _started(progress: Progress) -> Engine:
    global _own
    _own = OwnEngine.start(installed_dockerd(progress), lambda url: _silence(url) is None)
    return Engine(_own.url, _own)


def installed_dockerd(progress: Progress = to_stderr) -> Path:
    """Return the program of an engine; install it if it is missing. Starts nothing."""
    if _dockerd() is None:
        by_hand = f"install {PACKAGES[0]} by hand"
        apt.install_first(PACKAGES, log="docker", there=_dockerd, by_hand=by_hand, progress=progress)
    program = _dockerd()
    if program is None:
        raise SetupError(f"{PACKAGES[0]} was installed, but contains no dockerd; {BY_HAND}")
    return program


def _dockerd() -> Path | None:
    found = shutil.which("dockerd", path=PROGRAMS_PATH)
    return Path(found) if found else None


def _silence(url: str) -> str | None:
    """Return why the engine does not answer; None if it does."""
    client = None
    try:
        client = docker.DockerClient(base_url=url, timeout=10)
        client.ping()
    except (DockerException, OSError, ValueError) as error:
        return _in_short(error)
    finally:
        if client is not None:
            client.close()
    return None


def _in_short(error: BaseException) -> str:
    """Return the innermost reason, which docker-py wraps in two or three exceptions."""
    reason: BaseException = error
    while isinstance(inner := reason.__context__ or reason.__cause__, BaseException):
        reason = inner
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    return " ".join(text.split())[:200]


def _may(capability: int) -> bool:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return True
