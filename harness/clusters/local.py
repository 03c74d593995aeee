"""Real KRaft brokers as local processes, without root or Docker, each link behind its own proxy."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import provision
from harness.clusters.base import abandoned_clusters, storage_format
from harness.clusters.base.broker_properties import render, server_properties
from harness.clusters.base.cluster import ServerCluster
from harness.clusters.base.composition import Power
from harness.clusters.base.options import PLAIN, Options
from harness.clusters.base.security import Access, access
from harness.clusters.disk import byteman
from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Member, Mesh, Port
from harness.clusters.links.toxiproxy import ToxiproxyProcess
from harness.clusters.powers.local_nodes import (
    POWERS_OF_BROKERS,
    POWERS_OF_CONTROLLERS,
    LocalBroker,
    LocalNode,
)
from harness.clusters.powers.version import Upgraded
from harness.clusters.processes import programs as kafka_programs
from harness.clusters.processes.java import Jvm, lay_out
from harness.clusters.processes.programs import by_node, with_byteman
from harness.contracts import ClusterDescription, Lane, Stoppable
from harness.machine import loopback_block
from harness.processes import child_process
from harness.provision.kafka import UNKNOWN_VERSION, numbers_of
from harness.runtime import plain_paths

if TYPE_CHECKING:
    from harness.cluster_options import Choice

_READY_LIMIT_S = 90.0


class LocalCluster(ServerCluster[LocalNode]):
    """N brokers and M controllers in `folder`; combined: N nodes `broker-1…` that are both.

    `mixed` gives single nodes, by name, another version than `kafka_version`. `broker_settings` override the defaults
    on every node. All processes die with this one. `stop` leaves the logs in the folder, and the data too if `keep`.
    """

    kind = "local"

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
        security: str = "plaintext",
        certificate_days: int = 30,
    ) -> None:
        super().__init__(
            folder,
            brokers=brokers,
            controllers=controllers,
            combined=combined,
            broker_settings=broker_settings,
            options=options,
        )
        self._versions = by_node([member.name for member in self._members], kafka_version, mixed)
        for version in self._versions.values():
            self._must_fit(version)
        self._programs = programs or (_exactly if mixed else _programs)
        self._keep = keep
        self._security, self._certificate_days = security, certificate_days
        self._access: Access | None = None
        self._toxiproxy: ToxiproxyProcess | None = None
        self._jvms: dict[str, Jvm] = {}  # by version
        self._nodes: list[LocalNode] = []

    @classmethod
    def _settings_of(cls, choice: Choice) -> dict[str, Any]:
        own = {"mixed": choice.mixed_versions(), "security": choice.security}
        return {**super()._settings_of(choice), **own}

    def _start(self) -> None:
        abandoned_clusters.sweep_stale()
        self._jvms = {version: self._program(version) for version in sorted(set(self._versions.values()))}
        toxiproxy = provision.toxiproxy()
        format_folder = self._formatter()
        begun = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        child_process.sweep(self.folder)
        self._registration = abandoned_clusters.Registration(self.folder)
        self._block = loopback_block.take(Port)
        mesh = self._mesh = Mesh(self._block.number, self._members)
        self._toxiproxy = ToxiproxyProcess(toxiproxy, mesh.toxiproxy_address(), self.folder)
        self._access = access(self._security, mesh, self.folder / "certificates", self._certificate_days)
        links = self._links = Links(
            mesh, self._toxiproxy, self._access.security if self._access is not None else None
        )
        self._nodes = [self._make_node(member, mesh, links) for member in self._members]
        for node in self._nodes:
            shutil.rmtree(node.data, ignore_errors=True)
            format_folder(node)
            node.launch()
        self._toxiproxy.start(mesh.routes())  # up long before the first JVM connects to a peer
        self._wait_until_ready(begun, _READY_LIMIT_S, self._access)

    def stop(self) -> None:
        """Kill all processes at once: the nodes of a quorum that are all asked to stop would wait for each other."""
        with ExitStack() as ends:  # a failing step does not prevent the others; last in, first out
            if self._block is not None:
                ends.callback(self._block.release)
                self._block = None
            if self._registration is not None:
                ends.callback(self._registration.remove)
            if not self._keep:
                ends.callback(abandoned_clusters.clear, self.folder)
            if self._toxiproxy is not None:
                ends.callback(self._toxiproxy.stop)
            for node in self._nodes:
                ends.callback(node.closed)
            for node in self._nodes:
                ends.callback(node.kill)

    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        return self._access.security.settings if self._access is not None else {}

    def describe(self) -> ClusterDescription:
        jvms = list(self._jvms.values())
        more = {
            "java_version": jvms[0].java_version if jvms else None,
            "toxiproxy_version": provision.TOXIPROXY_VERSION,
            "security": self._security,
            "class_archive": bool(jvms) and all(jvm.archive is not None for jvm in jvms),
            **self._laid_out(),
        }
        return ClusterDescription(self.kind, self._steps_s, self._running_versions(), more=more)

    def _running_versions(self) -> str:
        """Return the versions that the nodes report, oldest first; the configured ones if none has reported yet."""
        upgradable = [node for node in self._nodes if isinstance(node, Upgraded)]
        reported = {node.version() for node in upgradable} - {UNKNOWN_VERSION}
        meant = {jvm.kafka_version for jvm in self._jvms.values()} or set(self._versions.values())
        return ", ".join(sorted(reported or meant, key=numbers_of))

    # Overridden by other layouts.

    def _formatter(self) -> Callable[[LocalNode], None]:
        """Return the function that fills the empty data folder of a node."""
        # The format of the oldest version: all nodes have to understand it.
        oldest = min(self._jvms.values(), key=lambda jvm: numbers_of(jvm.kafka_version))
        checkpoint = storage_format.template(oldest.java, oldest.classpath, oldest.kafka_version)
        cluster_id = storage_format.new_id()

        def fill(node: LocalNode) -> None:
            for folder in node.log_folders:
                storage_format.fill(folder, node.member.id, cluster_id, checkpoint)

        return fill

    def _program(self, version: str) -> Jvm:
        jvm = self._programs(version)
        return with_byteman(jvm) if self._options.byteman else jvm

    def _powers_of(self, member: Member) -> Sequence[type[Power]]:
        return POWERS_OF_BROKERS if member.broker else POWERS_OF_CONTROLLERS

    def _kind_of(self, member: Member) -> type[LocalNode]:
        return LocalBroker if member.broker else LocalNode

    def _properties(self, mesh: Mesh, member: Member, data: Path, version: str) -> Mapping[str, str]:
        settings = self._access.broker_settings() if self._access is not None else {}
        if member.broker and self._options.log_folders > 1:
            settings |= {"log.dirs": ",".join(map(str, self._options.folders_in(data)))}
        return server_properties(mesh, member, data, {**settings, **self._broker_settings}, version)

    def _make_node(self, member: Member, mesh: Mesh, links: Links) -> LocalNode:
        folder, jvm = self.folder / member.name, self._jvms[self._versions[member.name]]
        kind = self._node_class(member)
        node = kind(member, mesh.address(member), links, folder, self._options, jvm)
        hosts = mesh.hosts(member, socket.gethostname())
        data = plain_paths.seen_from(folder, folder / "data")

        def lay_out_as(version: str) -> None:
            lay_out(folder, render(self._properties(mesh, member, data, version)), hosts)

        lay_out_as(jvm.kafka_version)
        if isinstance(node, Upgraded):
            node.lay_out_as, node.programs_of = lay_out_as, _exactly
        if self._options.byteman:
            byteman.lay_out(folder)
        node.security = self._access.security if self._access is not None else None
        return node


def _programs(version: str) -> Jvm:
    return kafka_programs.programs(version, _run_once)


def _exactly(version: str) -> Jvm:
    return kafka_programs.programs(version, _run_once, exactly=True)


def _run_once(jvm: Jvm, folder: Path) -> None:
    """Run one broker with a bit of every kind of work and stop it cleanly, so that it dumps the classes it used."""
    cluster = LocalCluster(folder, brokers=1, controllers=1, combined=True, programs=lambda _version: jvm)
    with cluster:
        for node in cluster.nodes():
            if isinstance(node, Stoppable):
                node.shut_down()


cluster_class = LocalCluster
