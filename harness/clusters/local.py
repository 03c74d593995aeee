"""Real KRaft brokers as local processes, without root or Docker, every link behind a proxy of its own."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from harness import provision, tether, topics
from harness.clusters import _block, _stale, _storage
from harness.clusters._jvm import Jvm, lay_out
from harness.clusters._links import Links
from harness.clusters._mesh import Member, Mesh, Port, members
from harness.clusters._node import LocalBroker, LocalNode
from harness.clusters._options import PLAIN, Options
from harness.clusters._programs import by_node, exactly
from harness.clusters._programs import programs as programs_of
from harness.clusters._ready import Readiness
from harness.clusters._settings import render, server_properties
from harness.clusters._toxiproxy import Toxiproxy
from harness.clusters._view import LocalView
from harness.contracts import Lane, Node
from harness.errors import ClusterError, UsageError
from harness.provision.kafka import UNKNOWN_VERSION, numbers_of
from harness.scenario import TopicSettings

if TYPE_CHECKING:
    from harness.choice import Choice

_READY_LIMIT_S = 90.0


class LocalCluster:
    """N brokers and M controllers in `folder`; combined: N nodes `broker-1…` that are both.

    `mixed` gives single nodes, by name, another version than `kafka_version`. `broker_settings` win over the defaults,
    on every node. All processes die with this one. `stop` leaves the logs in the folder, and the data too if `keep`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        controllers: int = 3,
        combined: bool = False,
        kafka_version: str = provision.KAFKA_VERSION,
        mixed: Mapping[str, str] = {},
        broker_settings: Mapping[str, str] = {},
        keep: bool = False,
        options: Options = PLAIN,
        programs: Callable[[str], Jvm] | None = None,
    ) -> None:
        if not 1 <= brokers <= 100 or not 1 <= controllers <= 100:
            raise UsageError(f"brokers={brokers}, controllers={controllers}: allowed are 1 to 100")
        self.folder = folder.absolute()
        self._members = members(brokers, controllers, combined)
        self._combined = combined
        self._versions = by_node([member.name for member in self._members], kafka_version, mixed)
        self._programs = programs or (exactly if mixed else programs_of)
        self._broker_settings = dict(broker_settings)
        self._keep = keep
        self._options = options
        self._block: _block.Block | None = None
        self._registration: _stale.Registration | None = None
        self._mesh: Mesh | None = None
        self._toxiproxy: Toxiproxy | None = None
        self._links: Links | None = None
        self._jvms: dict[str, Jvm] = {}  # by version
        self._nodes: list[LocalNode] = []
        self._steps_s: dict[str, float] = {}

    @classmethod
    def chosen(cls, choice: Choice, folder: Path) -> Self:
        return cls(
            folder,
            combined=choice.combined,
            kafka_version=choice.kafka,
            mixed=choice.mixed_versions(),
            broker_settings=choice.settings,
            options=choice.options,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when ready was observed; on an error nothing is left running."""
        if self._block is not None:
            raise ClusterError(f"the cluster in {self.folder} was started already")
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        _stale.sweep_stale()
        self._jvms = {version: self._programs(version) for version in sorted(set(self._versions.values()))}
        toxiproxy = provision.toxiproxy()
        # The oldest one's: what is written there has to be understood by all.
        oldest = min(self._jvms.values(), key=lambda jvm: numbers_of(jvm.kafka_version))
        checkpoint = _storage.template(oldest.java, oldest.classpath, oldest.kafka_version)
        begun = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        tether.sweep(self.folder)
        self._registration = _stale.Registration(self.folder)
        self._block = _block.take(Port)
        mesh = self._mesh = Mesh(self._block.number, self._members)
        self._toxiproxy = Toxiproxy(toxiproxy, mesh.toxiproxy_address(), self.folder)
        links = self._links = Links(mesh, self._toxiproxy)
        cluster_id = _storage.new_id()
        self._nodes = [self._make_node(member, mesh, links) for member in self._members]
        for node in self._nodes:
            shutil.rmtree(node.data, ignore_errors=True)
            _storage.fill(node.data, node.member.id, cluster_id, checkpoint)
            node.launch()
        self._toxiproxy.start(mesh.routes())  # up long before the first JVM wants a peer
        readiness = Readiness(
            self._nodes, LocalView(self._nodes), mesh.bootstrap_servers(Lane.CONTROL), _READY_LIMIT_S
        )
        try:
            readiness.wait()
        finally:
            self._steps_s = readiness.steps_s
        self._steps_s["ready"] = round(time.monotonic() - begun, 2)

    def stop(self) -> None:
        """End everything at once by SIGKILL: a quorum that is asked to leave together waits for itself."""
        with ExitStack() as ends:  # whatever fails, the rest is done; last first
            if self._block is not None:
                ends.callback(self._block.release)
                self._block = None
            if self._registration is not None:
                ends.callback(self._registration.remove)
            if not self._keep:
                ends.callback(_stale.clear, self.folder)
            if self._toxiproxy is not None:
                ends.callback(self._toxiproxy.stop)
            for node in self._nodes:
                ends.callback(node.closed)
            for node in self._nodes:
                ends.callback(node.kill)

    def bootstrap_servers(self, lane: Lane) -> str:
        return self._started().bootstrap_servers(lane)

    def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes)

    def view(self) -> LocalView:
        self._started()
        return LocalView(self._nodes)

    def create_topic(self, name: str, settings: TopicSettings) -> None:
        topics.create_topic(self, name, settings)

    def delete_topic(self, name: str) -> None:
        topics.delete_topic(self, name)

    def collect_logs(self, into: Path) -> None:
        """Copy every server's log and Toxiproxy's; also after `stop`."""
        into.mkdir(parents=True, exist_ok=True)
        sources = {node.name: node.log for node in self._nodes}
        if self._toxiproxy is not None:
            sources["toxiproxy"] = self._toxiproxy.log
        for name, log in sources.items():
            if log.is_file():
                shutil.copyfile(log, into / f"{name}.log")

    def replica_folders(self, topic: str, partition: int) -> Mapping[str, Path]:
        """Where each broker that has a copy of the partition keeps it, whether it runs or not."""
        folders = {
            node.name: node.data / f"{topic}-{partition}" for node in self._nodes if node.member.broker
        }
        return {name: folder for name, folder in folders.items() if folder.is_dir()}

    def residue(self) -> list[str]:
        """What is left of faults on this cluster, each in a few words; nothing on one that was never touched."""
        left = [what for node in self._nodes for what in node.residue()]
        return left + (self._links.residue() if self._links is not None else [])

    def describe(self) -> Mapping[str, Any]:
        jvms = list(self._jvms.values())
        return {
            "kind": "local",
            "kafka_version": self._running_versions(),
            "java_version": jvms[0].java_version if jvms else None,
            "toxiproxy_version": provision.TOXIPROXY_VERSION,
            "brokers": len([m for m in self._members if m.broker]),
            "controllers": len([m for m in self._members if m.controller]),
            "combined": self._combined,
            "settings": self._broker_settings,
            "options": [name for name, on in vars(self._options).items() if on],
            "folder": str(self.folder),
            "class_archive": bool(jvms) and all(jvm.archive is not None for jvm in jvms),
            "loopback_block": self._mesh.block if self._mesh else None,
            "steps_s": dict(self._steps_s),
            "rss_mb": self._rss_mb(),
        }

    def _running_versions(self) -> str:
        """As the nodes tell, the oldest first; what they are meant to run where none has told yet."""
        told = {node.version() for node in self._nodes} - {UNKNOWN_VERSION}
        meant = {jvm.kafka_version for jvm in self._jvms.values()} or set(self._versions.values())
        return ", ".join(sorted(told or meant, key=numbers_of))

    def _make_node(self, member: Member, mesh: Mesh, links: Links) -> LocalNode:
        folder, jvm = self.folder / member.name, self._jvms[self._versions[member.name]]
        kind = LocalBroker if member.broker else LocalNode
        node = kind(member, mesh.address(member), links, folder, self._options, jvm)
        hosts, data, extra = mesh.hosts(member, socket.gethostname()), folder / "data", self._broker_settings
        node.lay_out_as = lambda version: lay_out(
            folder, render(server_properties(mesh, member, data, extra, version)), hosts
        )
        node.lay_out_as(jvm.kafka_version)
        return node

    def _started(self) -> Mesh:
        if self._mesh is None or self._block is None:
            raise ClusterError(f"the cluster in {self.folder} is not running")
        return self._mesh

    def _rss_mb(self) -> int:
        pids = [node.pid for node in self._nodes] + [self._toxiproxy.pid if self._toxiproxy else None]
        return round(sum(_rss_kb(pid) for pid in pids if pid is not None) / 1024)


def _rss_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


cluster_class = LocalCluster
