"""The base of every cluster that onceproof starts, with servers as processes or in containers."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from harness.clusters.base import abandoned_clusters
from harness.clusters.base.broker_properties import server_properties
from harness.clusters.base.composition import Power, Site, with_powers
from harness.clusters.base.log_marks import LogMarks
from harness.clusters.base.options import PLAIN, Options
from harness.clusters.base.readiness import Readiness
from harness.clusters.base.security import Access
from harness.clusters.base.server import Server
from harness.clusters.base.started import StartedByWith
from harness.clusters.base.view import LocalView
from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Member, Mesh, members
from harness.clusters.links.toxiproxy import Toxiproxy
from harness.contracts import ClusterDescription, Lane, Node, TopicSettings
from harness.errors import ClusterError, UsageError
from harness.kafka import topics
from harness.machine.loopback_block import Block
from harness.provision.kafka import numbers_of
from harness.runtime import signals

if TYPE_CHECKING:
    from harness.cluster_options import Choice

_FIRST_KRAFT = (3, 3)
N = TypeVar("N", bound=Server)  # a node of the kind of cluster


class ServerCluster(StartedByWith, Generic[N]):
    """Each kind of cluster implements `_start` and `stop`; in between, `_nodes` are its servers."""

    _block: Block | None = None  # from its start to its stop
    _mesh: Mesh | None = None
    _toxiproxy: Toxiproxy | None = None
    _links: Links | None = None
    _nodes: Sequence[N] = ()
    _security: str = "plaintext"
    _registration: abandoned_clusters.Registration | None = None
    _steps_s: Mapping[str, float] = {}
    _log_marks = LogMarks()

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int,
        controllers: int,
        combined: bool,
        broker_settings: Mapping[str, str],
        options: Options,
    ) -> None:
        must_be_sizes(brokers, controllers)
        self.folder = folder.absolute()
        self._members = self._lay_out(brokers, controllers, combined)
        self._combined = combined
        self._broker_settings = dict(broker_settings)
        self._options = options

    @classmethod
    def chosen(cls, choice: Choice, folder: Path) -> Self:
        """Return the cluster that the user's options ask for, not started yet."""
        return cls(folder, **cls._settings_of(choice))

    @classmethod
    def _settings_of(cls, choice: Choice) -> dict[str, Any]:
        """Return the arguments of the cluster that the user's options set."""
        return {
            "combined": choice.combined,
            "kafka_version": choice.kafka,
            "broker_settings": choice.settings,
            "options": choice.options,
        }

    @abstractmethod
    def _start(self) -> None:
        """Start the cluster; return when it was observed to be ready."""

    @abstractmethod
    def _kind_of(self, member: Member) -> type[N]:
        """Return the class of a node, without powers."""

    @abstractmethod
    def _powers_of(self, member: Member) -> Sequence[type[Power]]:
        """Return the powers that a node can have, if the options and this machine give them."""

    @abstractmethod
    def describe(self) -> ClusterDescription: ...

    def start(self) -> None:
        """Start the cluster; return when it was observed to be ready. After an error nothing is left running."""
        if self._block is not None:
            raise ClusterError(f"the cluster in {self.folder} was started already")
        try:
            self._start()
        except BaseException:
            with signals.deferred():
                self.stop()
            raise

    def bootstrap_servers(self, lane: Lane) -> str:
        return self._started().bootstrap_servers(lane)

    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        return {}

    def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes)

    def view(self) -> LocalView:
        self._started()
        return LocalView(self._nodes)

    def create_topic(self, name: str, settings: TopicSettings) -> None:
        topics.create_topic(self, name, settings)

    def delete_topic(self, name: str) -> None:
        topics.delete_topic(self, name)

    def begin_logs(self) -> None:
        """Make `collect_logs` begin at this moment instead of at the start of the cluster."""
        self._log_marks = LogMarks(self._logs())

    def collect_logs(self, into: Path) -> None:
        """Copy what every server and Toxiproxy logged since `begin_logs`; also after `stop`."""
        self._log_marks.copy(self._logs(), into)

    def _logs(self) -> dict[str, Path]:
        logs = {node.name: node.log for node in self._nodes}
        return logs | ({"toxiproxy": self._toxiproxy.log} if self._toxiproxy is not None else {})

    def replica_folders(self, topic: str, partition: int) -> Mapping[str, Path]:
        """Return the folder of each broker's copy of the partition, whether the broker runs or not."""
        return {
            node.name: replica
            for node in self._nodes
            for folder in node.log_folders
            if node.member.broker and (replica := folder / f"{topic}-{partition}").is_dir()
        }

    def residue(self) -> list[str]:
        """Describe what is left of faults on this cluster, a few words each; empty on an untouched cluster."""
        left = [what for node in self._nodes for what in node.residue()]
        return left + (self._links.residue() if self._links is not None else [])

    def rss_mb(self) -> int:
        """Return the memory of all servers and Toxiproxy together."""
        pids = [node.pid for node in self._nodes] + [self._toxiproxy.pid if self._toxiproxy else None]
        return round(sum(_rss_kb(pid) for pid in pids if pid is not None) / 1024)

    def _wait_until_ready(self, begun: float, limit_s: float, access: Access | None = None) -> None:
        """Wait until the cluster, whose start began at `begun`, is ready; keep the time of each step for `describe`."""
        bootstrap = self.bootstrap_servers(Lane.CONTROL)
        readiness = Readiness(self._nodes, self.view(), bootstrap, limit_s, access)
        try:
            readiness.wait()
        finally:
            self._steps_s = readiness.steps_s
        self._steps_s = {**readiness.steps_s, "ready": round(time.monotonic() - begun, 2)}

    def _laid_out(self) -> Mapping[str, Any]:
        """Return the layout of the cluster, for `describe`."""
        return {
            "brokers": len([m for m in self._members if m.broker]),
            "controllers": len([m for m in self._members if m.controller]),
            "combined": self._combined,
            "settings": self._broker_settings,
            "options": [name for name, on in vars(self._options).items() if on != getattr(PLAIN, name)],
            "folder": str(self.folder),
            "loopback_block": self._mesh.block if self._mesh else None,
            "rss_mb": self.rss_mb(),
        }

    # Overridden by other layouts.

    def _must_fit(self, kafka_version: str) -> None:
        """Raise UsageError if the version cannot run in this layout."""
        if numbers_of(kafka_version) < _FIRST_KRAFT:
            raise UsageError(
                f"Kafka {kafka_version} has no KRaft ready for production; use --cluster zookeeper"
            )

    def _lay_out(self, brokers: int, controllers: int, combined: bool) -> tuple[Member, ...]:
        return members(brokers, controllers, combined)

    def _properties(self, mesh: Mesh, member: Member, data: Path, version: str) -> Mapping[str, str]:
        return server_properties(mesh, member, data, self._broker_settings, version)

    def _node_class(self, member: Member) -> type[N]:
        """Return the class of a node with the powers that it can have."""
        site = Site(self._options, self.folder, self._security)
        return with_powers(self._kind_of(member), self._powers_of(member), site)

    def _started(self) -> Mesh:
        if self._mesh is None or self._block is None:
            raise ClusterError(f"the cluster in {self.folder} is not running")
        return self._mesh


def must_be_sizes(brokers: int, controllers: int) -> None:
    if not 1 <= brokers <= 100 or not 1 <= controllers <= 100:
        raise UsageError(f"brokers={brokers}, controllers={controllers}: choose 1 to 100")


def _rss_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
