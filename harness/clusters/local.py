"""Real KRaft brokers as local processes, without root or Docker, every link behind a proxy of its own."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness import provision, tether
from harness.clusters import _block, _stale, _storage
from harness.clusters._archive import with_archive
from harness.clusters._cluster import ServerCluster
from harness.clusters._jvm import Jvm, lay_out
from harness.clusters._links import Links
from harness.clusters._mesh import Member, Mesh, Port, members
from harness.clusters._node import LocalBroker, LocalNode
from harness.clusters._options import PLAIN, Options
from harness.clusters._ready import Readiness
from harness.clusters._settings import render, server_properties
from harness.clusters._toxiproxy import ToxiproxyProcess
from harness.contracts import Lane
from harness.errors import UsageError
from harness.provision.java import java_version
from harness.provision.kafka import version_of

if TYPE_CHECKING:
    from harness.choice import Choice

_READY_LIMIT_S = 90.0


class LocalCluster(ServerCluster):
    """N brokers and M controllers in `folder`; combined: N nodes `broker-1…` that are both.

    `broker_settings` win over the defaults, on every node. All processes die with this one. `stop` leaves the logs
    in the folder, and the data too if `keep`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        controllers: int = 3,
        combined: bool = False,
        kafka_version: str = provision.KAFKA_VERSION,
        broker_settings: Mapping[str, str] = {},
        keep: bool = False,
        options: Options = PLAIN,
    ) -> None:
        if not 1 <= brokers <= 100 or not 1 <= controllers <= 100:
            raise UsageError(f"brokers={brokers}, controllers={controllers}: allowed are 1 to 100")
        self.folder = folder.absolute()
        self._members = members(brokers, controllers, combined)
        self._combined = combined
        self._kafka_version = kafka_version
        self._broker_settings = dict(broker_settings)
        self._keep = keep
        self._options = options
        self._registration: _stale.Registration | None = None
        self._jvm: Jvm | None = None
        self._nodes: list[LocalNode] = []
        self._steps_s: dict[str, float] = {}

    @classmethod
    def chosen(cls, choice: Choice, folder: Path) -> Self:
        if choice.image:
            raise UsageError(f"--image {choice.image}: only --cluster docker runs images")
        return cls(
            folder,
            combined=choice.combined,
            kafka_version=choice.kafka,
            broker_settings=choice.settings,
            options=choice.options,
        )

    def _start(self) -> None:
        _stale.sweep_stale()
        jvm = self._jvm = self._jvm or self._find_programs()
        toxiproxy = provision.toxiproxy()
        checkpoint = _storage.template(jvm.java, jvm.classpath, jvm.kafka_version)
        begun = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        tether.sweep(self.folder)
        self._registration = _stale.Registration(self.folder)
        self._block = _block.take(Port)
        mesh = self._mesh = Mesh(self._block.number, self._members)
        self._toxiproxy = ToxiproxyProcess(toxiproxy, mesh.toxiproxy_address(), self.folder)
        links = self._links = Links(mesh, self._toxiproxy)
        cluster_id = _storage.new_id()
        self._nodes = [self._make_node(member, mesh, links, jvm) for member in self._members]
        for node in self._nodes:
            shutil.rmtree(node.data, ignore_errors=True)
            _storage.fill(node.data, node.member.id, cluster_id, checkpoint)
            node.launch()
        self._toxiproxy.start(mesh.routes())  # up long before the first JVM wants a peer
        readiness = Readiness(self._nodes, self.view(), mesh.bootstrap_servers(Lane.CONTROL), _READY_LIMIT_S)
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

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "local",
            "kafka_version": self._jvm.kafka_version if self._jvm else self._kafka_version,
            "java_version": self._jvm.java_version if self._jvm else None,
            "toxiproxy_version": provision.TOXIPROXY_VERSION,
            "brokers": len([m for m in self._members if m.broker]),
            "controllers": len([m for m in self._members if m.controller]),
            "combined": self._combined,
            "settings": self._broker_settings,
            "options": [name for name, on in vars(self._options).items() if on],
            "folder": str(self.folder),
            "class_archive": self._jvm is not None and self._jvm.archive is not None,
            "loopback_block": self._mesh.block if self._mesh else None,
            "steps_s": dict(self._steps_s),
            "rss_mb": self.rss_mb(),
        }

    def _find_programs(self) -> Jvm:
        java, libs = provision.java(), provision.kafka_libs(self._kafka_version)
        jvm = Jvm(java, java_version(java) or "unknown", libs, version_of(libs), provision.byteman())
        return with_archive(jvm, _run_once)

    def _make_node(self, member: Member, mesh: Mesh, links: Links, jvm: Jvm) -> LocalNode:
        folder = self.folder / member.name
        properties = server_properties(mesh, member, folder / "data", self._broker_settings)
        lay_out(folder, render(properties), mesh.hosts(member, socket.gethostname()))
        kind = LocalBroker if member.broker else LocalNode
        return kind(member, mesh.address(member), links, folder, self._options, jvm)


def _run_once(jvm: Jvm, folder: Path) -> None:
    """Let one broker do a bit of everything and end in order, so that it writes down the classes it used."""
    cluster = LocalCluster(folder, brokers=1, controllers=1, combined=True)
    cluster._jvm = jvm
    with cluster:
        for node in cluster._nodes:
            node.shut_down()


cluster_class = LocalCluster
