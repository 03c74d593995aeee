"""A server of a cluster, as a process or in a container. Powers are mixed in, one file each; see harness.clusters.base.composition."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from harness.clusters.base.load import ask_for_more
from harness.clusters.base.options import Options
from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Member, Port
from harness.errors import ClusterError, WaitTimeout
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.security import Secured, Security
from harness.kafka.topics import PROBE_TOPIC
from harness.waiting import wait_until

ASK_LIMIT_S = 2.0
# More than 60 s were seen where three brokers started at once at a load of 50.
_RESTART_LIMIT_S = 150.0
STOP_LIMIT_S = 60.0
_COMPLAINT = re.compile(r"\b(ERROR|FATAL)\b|Exception|^Error|Unrecognized|OutOfMemory")
_TAIL_BYTES = 256 * 1024


class Server(ABC):
    """Killable, Stoppable and Pausable. Powers add to `residue` and `closed`; each kind of server (a process, a
    container) implements how it is launched and ended.
    """

    lacks: ClassVar[Mapping[type, str]] = {}  # powers that this node does not have: the reason and the remedy

    def __init__(self, member: Member, address: str, links: Links, folder: Path, options: Options) -> None:
        self.member = member
        self.address = address
        self.folder = folder
        self.links_of_cluster = links
        self.options = options
        self.security: Security | None = None  # of the client listeners; None: plain text

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log_folders(self) -> list[Path]:
        return self.options.folders_in(self.data) if self.member.broker else [self.data]

    # Addresses for the harness itself; overridden by servers that are reached otherwise.

    @property
    def control(self) -> raw_client.Address:
        """The address of the broker on the control lane."""
        return Secured.of((self.address, Port.CONTROL), self.security)

    @property
    def controller(self) -> raw_client.Address:
        """The address of the controller's listener."""
        return (self.address, Port.CONTROLLER)

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Return the server's process id on this machine; None if it does not run."""

    @abstractmethod
    def launch(self) -> None:
        """Start the server; it is not ready yet when this returns."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """Return the exit code of a server that has ended."""

    # Killable

    @abstractmethod
    def kill(self) -> None:
        """Kill the server; return when it has ended."""

    @abstractmethod
    def running(self) -> bool: ...

    def restart(self) -> None:
        """Start the server; return when it takes part in the cluster again."""
        if self.running():
            return
        self.launch()
        try:
            wait_until(self.ready, _RESTART_LIMIT_S, lambda: f"{self.name} is not back; {self.complaint()}")
        except WaitTimeout as error:
            raise ClusterError(str(error)) from error

    # Stoppable

    @abstractmethod
    def shut_down(self, limit_s: float = STOP_LIMIT_S) -> int: ...

    # Pausable

    @abstractmethod
    def pause(self) -> None: ...

    @abstractmethod
    def resume(self) -> None: ...

    @abstractmethod
    def paused(self) -> bool: ...

    # extended by powers

    def residue(self) -> list[str]:
        """Describe what is left of faults on this node, a few words each; empty on an untouched node."""
        return [f"{self.name} is paused"] if self.paused() else []

    def closed(self) -> None:  # noqa: B027  # most have nothing to release
        """Release everything else when the cluster stops and the process has ended."""

    # observations

    def must_run(self) -> None:
        """Raise ClusterError if the process has ended."""
        if not self.running():
            raise ClusterError(f"{self.name} ended with code {self.exit_code()}: {self.complaint()}")

    def ready(self) -> bool:
        """Return whether the node itself says that it takes part; raise ClusterError if its process has ended."""
        self.must_run()
        try:
            return self._takes_part()
        except raw_client.WireError:
            return False

    def reported_time_ms(self) -> int:
        """Ask the server for its time. A controller reports its time only while it leads the quorum."""
        if self.member.broker:
            place = self.member.id - 1
            return raw_client.append(self.control, PROBE_TOPIC, place, b"clock", timeout_s=10.0).time_ms
        return raw_client.quorum_leader_time_ms(self.controller, ASK_LIMIT_S)

    def keep_busy(self, for_s: float) -> None:
        """Load the server with more requests than it can serve."""
        ask_for_more(self.control if self.member.broker else self.controller, for_s)

    def ask_for_memory(self, for_s: float) -> None:
        """Load the server with work that uses memory."""
        self.keep_busy(for_s)

    def complaint(self) -> str:
        """Return the last line of the log that reports trouble, and the path of the log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        found = [line for line in lines if _COMPLAINT.search(line)] or lines or ["its log is empty"]
        return f"{found[-1].strip()[:300]} (log: {self.log})"

    def _takes_part(self) -> bool:
        raw_client.api_versions(self.controller, ASK_LIMIT_S)
        return True
