"""Network namespaces for a few servers, joined by a bridge, as a container engine makes them.

Each exists as long as a process inside it, and these processes die with the test run: nothing can be left behind.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.clusters.links.mesh import Member, Port
from harness.clusters.links.packet_rules import End
from harness.machine.network_namespace import in_network_of
from harness.processes import child_process
from harness.waiting import wait_until

_OWN = Path("/proc/self/ns/net")


class Networks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._numbers: dict[str, int] = {}
        self._switch = self._spawn("switch", "sleep", "infinity")
        self._ip(self._switch.pid, "link add bridge0 type bridge", "link set bridge0 up")

    def end(self, name: str, *, broker: bool = True, controller: bool = False) -> End:
        """Start a server with this name and return its end; it runs when this returns."""
        self._numbers[name] = len(self._numbers) + 1
        self.start(name)
        member = Member(name, self._numbers[name], broker, controller)
        return End(member, self._address(name), lambda: self._pid(name))

    def start(self, name: str) -> None:
        """Start a server in a new network, with the addresses that the name had before, as an engine does."""
        process = self._spawn(name, sys.executable, "-m", "suites.harness_checks.faults._tiny_server")
        self._processes[name] = process
        port = f"port{process.pid}"
        self._ip(
            self._switch.pid,
            f"link add {port} type veth peer name eth0 netns {process.pid}",
            f"link set {port} master bridge0 up",
        )
        self._ip(
            process.pid,
            f"link set eth0 address 02:00:00:00:00:{self._numbers[name]:02x}",
            f"addr add {self._address(name)}/24 dev eth0",
            "link set eth0 up",
        )
        wait_until(lambda: _listens(process.pid), 20.0, f"{name} does not listen")

    def kill(self, name: str) -> None:
        """Kill a server. Its network is deleted first: the kernel may keep it for minutes, for unacknowledged data."""
        process = self._processes[name]
        self._ip(self._switch.pid, f"link delete port{process.pid}")
        child_process.end(process)

    def close(self) -> None:
        for process in (*self._processes.values(), self._switch):
            child_process.end(process)

    def _address(self, name: str) -> str:
        return f"10.77.0.{self._numbers[name]}"

    def _pid(self, name: str) -> int | None:
        process = self._processes[name]
        return process.pid if process.poll() is None else None

    def _spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        process = child_process.spawn(["unshare", "--net", *command], log=self._folder / f"{name}.log")
        network = Path(f"/proc/{process.pid}/ns/net")
        wait_until(lambda: network.readlink() != _OWN.readlink(), 10.0, f"{name} has no network of its own")
        return process

    @staticmethod
    def _ip(pid: int, *commands: str) -> None:
        for command in commands:
            in_network_of(pid, lambda command=command: subprocess.run(["ip", *command.split()], check=True))  # type: ignore[misc]


def _listens(pid: int) -> bool:
    """Return True if both ports listen, as the kernel reports; state 0A is LISTEN."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    ports = {int(line.split()[1].split(":")[1], 16) for line in lines if line.split()[3] == "0A"}
    return {Port.INTERNAL, Port.CONTROLLER} <= ports
