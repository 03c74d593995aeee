"""The nodes of a local cluster and their powers."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import tether, wire
from harness.clusters import _byteman
from harness.clusters._jvm import Jvm
from harness.clusters._links import Links
from harness.clusters._mesh import Member, Mesh, Port
from harness.contracts import Cut, Direction, Link, SlowAppend
from harness.errors import ClusterError, FaultError, WaitTimeout
from harness.waiting import wait_until

PROBE_TOPIC = "onceproof-probe"
_ASK_LIMIT_S = 2.0
_RESTART_LIMIT_S = 60.0
_COMPLAINT = re.compile(r"\b(ERROR|FATAL)\b|Exception|^Error|Unrecognized|OutOfMemory")
_TAIL_BYTES = 256 * 1024


class LocalNode:
    """A server process; as it stands, a controller. Killable, Pausable and Severable."""

    def __init__(self, member: Member, mesh: Mesh, links: Links, jvm: Jvm, folder: Path) -> None:
        self.member = member
        self.address = mesh.address(member)
        self.folder = folder
        self.paused = False
        self._links = links
        self._jvm = jvm
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.running() else None

    # Killable

    def launch(self) -> None:
        """Start the process; it is not ready yet when this returns."""
        command = self._jvm.command(self.member, self.address, self.folder)
        self._process = tether.spawn(command, log=self.log, cwd=self.folder, pidfile=self._pidfile)

    def terminate(self, timeout_s: float) -> None:
        """Ask the process to end by itself, and wait for it."""
        if self._process is not None:
            self._process.terminate()
        wait_until(lambda: not self.running(), timeout_s, f"{self.name} did not end after SIGTERM")

    def kill(self) -> None:
        if self._process is not None:
            tether.end(self._process)
        self._pidfile.unlink(missing_ok=True)
        self.paused = False

    def restart(self) -> None:
        """Returns when the node takes part in the cluster again."""
        if self.running():
            return
        self.launch()
        try:
            wait_until(self.ready, _RESTART_LIMIT_S, lambda: f"{self.name} is not back; {self.complaint()}")
        except WaitTimeout as error:
            raise ClusterError(str(error)) from error

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def must_run(self) -> None:
        """Raises ClusterError if the process has ended."""
        if not self.running():
            code = None if self._process is None else self._process.returncode
            raise ClusterError(f"{self.name} ended with code {code}: {self.complaint()}")

    def ready(self) -> bool:
        """Whether the node, asked by itself, takes part; raises ClusterError if its process has ended."""
        self.must_run()
        try:
            return self._takes_part()
        except wire.WireError:
            return False

    def complaint(self) -> str:
        """The last line of the log that tells of trouble, and where the log is."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        told = [line for line in lines if _COMPLAINT.search(line)] or lines or ["its log is empty"]
        return f"{told[-1].strip()[:300]} (log: {self.log})"

    def _takes_part(self) -> bool:
        wire.api_versions((self.address, Port.CONTROLLER), _ASK_LIMIT_S)
        return True

    @property
    def _pidfile(self) -> Path:
        return self.folder / "server.pid"

    # Pausable

    def pause(self) -> None:
        if self._process is not None and self.running():
            self._process.send_signal(signal.SIGSTOP)
            self.paused = True

    def resume(self) -> None:
        if self._process is not None and self.running():
            self._process.send_signal(signal.SIGCONT)
        self.paused = False

    # Severable

    def links(self) -> Sequence[Link]:
        return self._links.of(self.name)

    def sever(self, cuts: Sequence[Cut]) -> None:
        strangers = [cut.link for cut in cuts if self.name not in (cut.link.source, cut.link.destination)]
        if strangers:
            raise FaultError(f"{self.name} is at no end of {', '.join(map(str, strangers))}")
        self._links.sever(cuts, by=self.name)

    def mend(self) -> None:
        self._links.mend(by=self.name)

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        return self._links.passes(link)


class LocalBroker(LocalNode):
    """A broker, also one that is a controller as well: DiskBreakable on top."""

    @property
    def control(self) -> wire.Address:
        return (self.address, Port.CONTROL)

    def break_disk(self, how: SlowAppend) -> None:
        _byteman.load(self._byteman, _byteman.rule(how, also=PROBE_TOPIC))

    def mend_disk(self) -> None:
        if self.running():  # rules die with the JVM
            _byteman.unload_all(self._byteman)

    def produce_round_trip_ms(self) -> float:
        """How long this broker takes to acknowledge one small record of its own probe partition."""
        begun = time.monotonic()
        wire.produce(self.control, PROBE_TOPIC, self.member.id - 1, b"probe", timeout_s=10.0)
        return (time.monotonic() - begun) * 1000

    def has_coordinator(self, key: str, *, transaction: bool) -> bool:
        return wire.coordinator_error(self.control, key, transaction=transaction, timeout_s=_ASK_LIMIT_S) == 0

    def metadata(self, *topics: str) -> wire.Metadata:
        return wire.metadata(self.control, topics, _ASK_LIMIT_S)

    def _takes_part(self) -> bool:
        # A broker answers only after it has caught up with its own new registration, so when it lists itself
        # this is not what was left of its life before.
        return self.member.id in self.metadata().brokers

    @property
    def _byteman(self) -> tuple[str, int]:
        return (self.address, Port.BYTEMAN)
