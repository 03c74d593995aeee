"""Toxiproxy in a container next to the nodes: it serves the client lanes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.clusters.containers.container import Contained
from harness.clusters.containers.host import ContainerSpec, Yard
from harness.clusters.containers.mesh import ContainerMesh
from harness.clusters.links.mesh import Port, Route
from harness.clusters.links.toxiproxy import Toxiproxy
from harness.provision.docker.images import TOXIPROXY


class ToxiproxyContainer(Toxiproxy):
    def __init__(self, yard: Yard, image: str, mesh: ContainerMesh, folder: Path) -> None:
        super().__init__(mesh.toxiproxy_address(), folder)
        self._ports = mesh.proxy_ports()
        wanted = ContainerSpec(
            name="toxiproxy",
            image=image,
            command=[TOXIPROXY, "-host", "0.0.0.0", "-port", str(int(Port.TOXIPROXY))],
            address=mesh.toxiproxy_listen_address(),
            ports=mesh.published_by_toxiproxy(),
            folders={},
            files={},
        )
        self._contained = Contained(yard, wanted, self.log)

    @property
    def pid(self) -> int | None:
        return self._contained.server_pid()

    def listen_address(self, route: Route) -> str:
        return f"0.0.0.0:{self._ports[route.proxy]}"

    def launch(self, config: Path) -> None:
        wanted = self._contained.wanted
        self._contained.wanted = replace(
            wanted, command=[*wanted.command, "-config", str(config)], files={config: str(config)}
        )
        self._contained.start()

    def running(self) -> bool:
        return self._contained.running()

    def stop(self) -> None:
        self._contained.remove()
