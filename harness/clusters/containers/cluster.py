"""Real KRaft brokers in containers, on their own network, reached from outside like local ones."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import provision
from harness.clusters.base import abandoned_clusters, storage_format
from harness.clusters.base.broker_properties import render
from harness.clusters.base.cluster import ServerCluster
from harness.clusters.base.composition import Power
from harness.clusters.base.options import PLAIN, Options
from harness.clusters.containers.broker import ContainerBroker, ContainerNode
from harness.clusters.containers.container import Contained, ImageJvm, java_of
from harness.clusters.containers.host import ContainerSpec, Yard
from harness.clusters.containers.labels import sweep_labelled
from harness.clusters.containers.links import ContainerLinks
from harness.clusters.containers.mesh import ContainerMesh
from harness.clusters.containers.nodes import OTHERS_ENGINE, POWERS_OF_BROKERS, POWERS_OF_NODES
from harness.clusters.containers.toxiproxy import ToxiproxyContainer
from harness.clusters.disk import byteman
from harness.clusters.links import packet_filter
from harness.clusters.links.mesh import Member, Port
from harness.clusters.links.packet_filter import PacketLinks
from harness.clusters.links.packet_rules import End
from harness.clusters.processes.java import lay_out
from harness.clusters.processes.programs import byteman_script
from harness.contracts import ClusterDescription
from harness.errors import UsageError
from harness.machine import loopback_block
from harness.provision import cache_dir
from harness.provision.docker.engine import engine
from harness.provision.docker.images import KAFKA_LIBS, chosen_image, kafka_image, toxiproxy_image
from harness.provision.kafka import must_be_release, version_of
from harness.runtime.plain_paths import must_be_plain

if TYPE_CHECKING:
    from docker import DockerClient

    from harness.cluster_options import Choice

_READY_LIMIT_S = 120.0
_VERSION = re.compile(r"Kafka version: (\S+)")
_BYTEMAN = "/opt/onceproof/byteman.jar"
_RULES = f"/opt/onceproof/{byteman.SCRIPT_NAME}"


class DockerCluster(ServerCluster[ContainerNode]):
    """N brokers and M controllers, with their data and logs in `folder`; combined: N nodes `broker-1…` that are both.

    `image` has the layout of the official image; empty: an image is built here. `broker_settings` override the
    defaults on every node. `stop` leaves the logs in the folder.
    """

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        controllers: int = 3,
        combined: bool = False,
        kafka_version: str = provision.KAFKA_VERSION,
        image: str = "",
        broker_settings: Mapping[str, str] = {},
        options: Options = PLAIN,
    ) -> None:
        if options.clocks:
            raise UsageError("--cluster docker: the clocks of containers cannot be set; use --cluster local")
        if options.log_folders > 1:
            raise UsageError("--cluster docker: brokers have one log folder each; use --cluster local")
        must_be_release(kafka_version)
        self._must_fit(kafka_version)
        super().__init__(
            folder,
            brokers=brokers,
            controllers=controllers,
            combined=combined,
            broker_settings=broker_settings,
            options=options,
        )
        must_be_plain(self.folder, "--cluster docker: containers cannot have the folder")
        self._kafka_version = kafka_version
        self._chosen_image = image
        self._yard: Yard | None = None
        self._nodes: list[ContainerNode] = []
        self._images: dict[str, str] = {}
        self._engine: Mapping[str, Any] = {}

    @classmethod
    def _settings_of(cls, choice: Choice) -> dict[str, Any]:
        return {**super()._settings_of(choice), "image": choice.image}

    def _start(self) -> None:
        must_be_plain(cache_dir(), "--cluster docker: containers cannot have the cache folder")
        found = engine()
        if self._options.fuse and found.own is None:
            raise UsageError(OTHERS_ENGINE.format(found.url))
        with closing(found.client()) as client:
            sweep_labelled(client)
            abandoned_clusters.sweep_stale()
            self._images = self._find_images(client)
        agent = {provision.byteman(): _BYTEMAN, byteman_script(): _RULES} if self._options.byteman else {}
        begun = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._registration = abandoned_clusters.Registration(self.folder)
        self._block = loopback_block.take(Port)
        yard = self._yard = Yard(found, self.folder)
        self._engine = {"version": yard.client.version()["Version"], "own": found.own is not None}
        mesh = self._mesh = ContainerMesh(self._block.number, self._members, yard.network)
        jvm = ImageJvm(
            java_of(yard.environment_of(self._images["kafka"])),
            "of the image",
            Path(KAFKA_LIBS),
            self._kafka_version,
            agent=Path(_BYTEMAN),
            rules=Path(_RULES),
        )
        format_folder = self._formatter(yard, jvm)
        toxiproxy = self._toxiproxy = ToxiproxyContainer(yard, self._images["toxiproxy"], mesh, self.folder)
        links = self._links = ContainerLinks(mesh, toxiproxy, self._packet_links(mesh))
        self._nodes = [self._make_node(member, mesh, links, jvm, agent) for member in self._members]
        for node in self._nodes:
            shutil.rmtree(node.data, ignore_errors=True)
            format_folder(node)
        with ThreadPoolExecutor(max_workers=len(self._nodes) + 1) as pool:
            started = [pool.submit(node.launch) for node in self._nodes]
            started.append(pool.submit(toxiproxy.start, mesh.routes()))
        for each in started:
            each.result()
        self._wait_until_ready(begun, _READY_LIMIT_S)

    def stop(self) -> None:
        """Remove all containers at once, and their network."""
        with ExitStack() as ends:  # a failing step does not prevent the others; last in, first out
            if self._block is not None:
                ends.callback(self._block.release)
                self._block = None
            if self._registration is not None:
                ends.callback(self._registration.remove)
            ends.callback(abandoned_clusters.clear, self.folder)
            if self._yard is not None:
                ends.callback(self._yard.close)
                self._yard = None
            ends.callback(self._remove_containers)

    def describe(self) -> ClusterDescription:
        more = {
            "toxiproxy_version": provision.TOXIPROXY_VERSION,
            "images": dict(self._images),
            "engine": dict(self._engine),
            **self._laid_out(),
        }
        return ClusterDescription("docker", self._steps_s, self._running_version(), more=more)

    def _find_images(self, client: DockerClient) -> dict[str, str]:
        proxy = toxiproxy_image(client, provision.toxiproxy(), provision.TOXIPROXY_VERSION)
        if self._chosen_image:
            return {"kafka": chosen_image(client, self._chosen_image), "toxiproxy": proxy}
        libs = provision.kafka_libs(self._kafka_version)
        self._kafka_version = version_of(libs)  # jars provided by the user may be of another version
        own = kafka_image(client, provision.java(), libs, self._kafka_version)
        return {"kafka": own, "toxiproxy": proxy}

    def _formatter(self, yard: Yard, jvm: ImageJvm) -> Callable[[ContainerNode], None]:
        """Return the function that fills the empty data folder of a node, with the tool of the image."""
        image, cluster_id = self._images["kafka"], storage_format.new_id()

        def run(words: Sequence[str | Path], folder: Path) -> tuple[int, str]:
            return yard.run(image, [str(word) for word in words], folder)

        checkpoint = storage_format.template(jvm.java, jvm.classpath, f"image-{yard.id_of(image)}", run)
        return lambda node: storage_format.fill(node.data, node.member.id, cluster_id, checkpoint)

    def _powers_of(self, member: Member) -> Sequence[type[Power]]:
        return POWERS_OF_BROKERS if member.broker else POWERS_OF_NODES

    def _kind_of(self, member: Member) -> type[ContainerNode]:
        return ContainerBroker if member.broker else ContainerNode

    def _make_node(
        self,
        member: Member,
        mesh: ContainerMesh,
        links: ContainerLinks,
        jvm: ImageJvm,
        agent: Mapping[Path, str],
    ) -> ContainerNode:
        assert self._yard is not None
        folder, inside = self.folder / member.name, mesh.listen_address(member)
        properties = self._properties(mesh, member, folder / "data", self._kafka_version)
        lay_out(folder, render(properties), mesh.hosts(member, member.name))
        if self._options.byteman:
            byteman.lay_out(folder)
        wanted = ContainerSpec(
            name=member.name,
            image=self._images["kafka"],
            command=[str(word) for word in jvm.command(member, folder, byteman=self._options.byteman)],
            address=inside,
            ports=mesh.published(member),
            folders={folder: "rw"},
            files=dict(agent),
        )
        contained = Contained(self._yard, wanted, folder / "server.log")
        kind = self._node_class(member)
        return kind(member, mesh.address(member), links, folder, self._options, contained)

    def _packet_links(self, mesh: ContainerMesh) -> PacketLinks | None:
        if packet_filter.trouble():
            return None
        return PacketLinks(
            {
                member.name: End(
                    member,
                    mesh.listen_address(member),
                    lambda name=member.name: self._pid_in_network(name),  # type: ignore[misc]
                )
                for member in self._members
            }
        )

    def _pid_in_network(self, name: str) -> int | None:
        return next((node.contained.pid() for node in self._nodes if node.name == name), None)

    def _remove_containers(self) -> None:
        ends = [node.closed for node in self._nodes]
        ends += [self._toxiproxy.stop] if self._toxiproxy is not None else []
        with ThreadPoolExecutor(max_workers=max(1, len(ends))) as pool:
            done = [pool.submit(end) for end in ends]
        for each in done:
            each.result()

    def _running_version(self) -> str:
        """Return the version that the first node logged; before that, the configured version."""
        for node in self._nodes:
            if node.log.is_file():
                with node.log.open(encoding="utf-8", errors="replace") as lines:
                    matches = (_VERSION.search(line) for line in lines)
                    if found := next((match for match in matches if match), None):
                        return found[1]
        return self._kafka_version
