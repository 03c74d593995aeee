"""A Kafka server that runs in a container."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from harness.clusters.base.options import Options
from harness.clusters.base.server import STOP_LIMIT_S, Server
from harness.clusters.containers.host import ContainerSpec, Yard, complain, host_pid
from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Member
from harness.clusters.processes.java import Jvm
from harness.errors import ClusterError, FaultError
from harness.processes import child_process
from harness.waiting import wait_until

_GONE_LIMIT_S = 30.0
_PERIOD_US = 100_000


class Contained:
    """A container over several starts: the same container is started again, so its addresses and ports stay."""

    def __init__(self, yard: Yard, wanted: ContainerSpec, log: Path) -> None:
        self.yard = yard
        self.wanted = wanted
        self._log = log
        self._container: Container | None = None
        self._first: child_process.Identity | None = None  # its first process
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        """Start the container, for the first time or again. Its whole output goes to the log."""
        if self._container is None:
            self._container = self.yard.start(self.wanted)
            self._listen(self._container, from_begin=True)
        else:
            self._listen(self._container, from_begin=False)
            try:
                self._container.start()
            except DockerException as error:
                complain(f"{self.wanted.name} cannot be started again", error)
        pid = host_pid(self._container)
        self._first = child_process.identify(pid) if pid is not None else None

    def pid(self) -> int | None:
        """Return the pid of its first process on this machine; None if it does not run."""
        return self._first.pid if self._first is not None and self._first.alive() else None

    def server_pid(self) -> int | None:
        """Return the pid of the server: the child of the first process, which is a minimal init."""
        first = self.pid()
        if first is None:
            return None
        with suppress(OSError):
            for child in Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii").split():
                return int(child)
        return None

    def running(self) -> bool:
        return self.pid() is not None

    def kill(self) -> None:
        """Kill the container; return when it has ended and can be started again."""
        self.signal("SIGKILL")
        self.wait_gone(_GONE_LIMIT_S)

    def signal(self, name: str) -> None:
        if self._container is not None:
            with suppress(NotFound, APIError):  # it does not run
                self._container.kill(name)

    def wait_gone(self, limit_s: float) -> None:
        wait_until(self._gone, limit_s, f"{self.wanted.name} does not end")
        if self._listener is not None:
            self._listener.join(_GONE_LIMIT_S)

    def exit_code(self) -> int | None:
        state = self._state()
        return int(state["ExitCode"]) if state.get("Status") == "exited" else None

    def pause(self) -> None:
        if self._container is not None and self.running():
            with suppress(APIError):  # it is paused already
                self._container.pause()

    def resume(self) -> None:
        if self.paused() and self._container is not None:
            self._container.unpause()

    def paused(self) -> bool:
        return self.running() and bool(self._state().get("Paused"))

    def limit_cpu(self, share: float | None) -> None:
        """Limit the container to this share of one processor; None: no limit."""
        if self._container is not None:
            limit_cpu(self._container, share)

    def cpu_is_limited(self) -> bool:
        if self._container is None:
            return False
        self._container.reload()
        return int(self._container.attrs["HostConfig"]["CpuQuota"] or -1) > 0

    def remove(self) -> None:
        if self._container is None:
            return
        try:
            self._container.remove(force=True, v=True)
        except NotFound:
            pass
        except APIError as error:
            complain(f"{self.wanted.name} cannot be removed", error)
        if self._listener is not None:
            self._listener.join(_GONE_LIMIT_S)
        self._container = self._first = None

    def _gone(self) -> bool:
        return self._state().get("Status", "exited") in ("exited", "dead", "created")

    def _state(self) -> dict[str, Any]:
        if self._container is None:
            return {}
        try:
            self._container.reload()
        except NotFound:
            return {}
        return dict(self._container.attrs["State"])

    def _listen(self, container: Container, *, from_begin: bool) -> None:
        """Follow its output; called before it is started again, so that no line is missed."""
        pieces = container.attach(stream=True, logs=from_begin)
        log = self._log

        def write() -> None:
            with log.open("ab", buffering=0) as file, suppress(OSError, DockerException):
                for piece in pieces:
                    file.write(piece)

        self._listener = threading.Thread(target=write, name=f"log-{self.wanted.name}", daemon=True)
        self._listener.start()


def limit_cpu(container: Container, share: float | None) -> None:
    """Set the limit through the engine, so that it survives a restart. None removes the limit."""
    quota_us = -1 if share is None else max(1000, round(share * _PERIOD_US))
    try:
        container.update(cpu_period=_PERIOD_US, cpu_quota=quota_us)
    except DockerException as error:
        raise FaultError(f"{container.name} cannot be limited: {error}") from error


class KafkaContainer(Server):
    def __init__(
        self, member: Member, address: str, links: Links, folder: Path, options: Options, contained: Contained
    ) -> None:
        super().__init__(member, address, links, folder, options)
        self.contained = contained

    @property
    def pid(self) -> int | None:
        return self.contained.server_pid()

    def launch(self) -> None:
        self.contained.start()

    def exit_code(self) -> int | None:
        return self.contained.exit_code()

    def kill(self) -> None:
        self.contained.kill()

    def running(self) -> bool:
        return self.contained.running()

    def shut_down(self, limit_s: float = STOP_LIMIT_S) -> int:
        self.contained.signal("SIGTERM")
        self.contained.wait_gone(limit_s)
        return self.contained.exit_code() or 0

    def pause(self) -> None:
        self.contained.pause()

    def resume(self) -> None:
        self.contained.resume()

    def paused(self) -> bool:
        return self.contained.paused()

    def closed(self) -> None:
        super().closed()
        self.contained.remove()


class ImageJvm(Jvm):
    """The JVM of an image: its jars cannot be listed from outside."""

    @property
    def classpath(self) -> str:
        return f"{self.libs}/*"


def java_of(environment: list[str]) -> Path:
    """Return the path of an image's Java, from its environment."""
    variables = dict(word.partition("=")[::2] for word in environment)
    if home := variables.get("JAVA_HOME"):
        return Path(home) / "bin" / "java"
    raise ClusterError("the image has no JAVA_HOME; use an image with the layout of the official one")
