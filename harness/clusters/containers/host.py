"""The host of one cluster's containers: an engine, a network, and the making of containers there."""

from __future__ import annotations

import ipaddress
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from docker.errors import DockerException
from docker.models.containers import Container
from docker.types import IPAMConfig, IPAMPool, LogConfig
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from harness.clusters.containers.labels import labels
from harness.errors import ClusterError
from harness.provision.docker.engine import Engine

testcontainers_config.ryuk_disabled = True  # replaced by labels and sweeps, without another image
_TRIES = 20
_ROUTES = Path("/proc/net/route")


@dataclass(frozen=True)
class ContainerSpec:
    """One container: its command, its addresses, and its view of this machine's files."""

    name: str
    image: str
    command: Sequence[str]
    address: str
    ports: Mapping[int, tuple[str, int]]  # inside -> outside
    folders: Mapping[Path, str]  # at the same path inside; rw or ro
    files: Mapping[Path, str]  # read-only, at that path inside


class Yard:
    """An engine with a network for one cluster; `close` removes the network, after its containers were removed."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.client = engine.client()
        self._labels = labels(folder)
        self._prefix = f"onceproof-{os.getpid()}-{random.Random(os.urandom(8)).randrange(16**6):06x}"
        self._network = self._new_network()

    @property
    def network(self) -> str:
        """Return the first three numbers of its addresses."""
        return str(self._subnet.network_address).rpartition(".")[0]

    def start(self, wanted: ContainerSpec) -> Container:
        """Make a container and start it; its output from the start on remains available."""
        with _complaining(f"{wanted.name} cannot be started"), _unchanged_environment():
            made = DockerContainer(wanted.image, docker_client_kw=self._client_settings())
            made.with_command(list(wanted.command[1:])).with_name(f"{self._prefix}-{wanted.name}")
            made.with_network(self._network)
            for folder, mode in wanted.folders.items():
                made.with_volume_mapping(str(folder), str(folder), mode)
            for file, inside in wanted.files.items():
                made.with_volume_mapping(str(file), inside, "ro")
            ports: dict[str, Any] = {str(port): place for port, place in wanted.ports.items()}
            made.ports.update(ports)
            endpoint = self.client.api.create_endpoint_config(ipv4_address=wanted.address)
            made.with_kwargs(
                entrypoint=list(wanted.command[:1]),
                init=True,
                user=f"{os.getuid()}:{os.getgid()}",
                labels=self._labels,
                hostname=wanted.name,
                networking_config={self._network.name: endpoint},
                log_config=LogConfig(type="json-file", config={"max-size": "50m"}),
            )
            made.start()
            return self.client.containers.get(made.get_container_id())

    def run(self, image: str, command: Sequence[str], folder: Path) -> tuple[int, str]:
        """Run a command to its end without a network; return its exit code and its output."""
        with _complaining(f"{command[0]} cannot be run in {image}"):
            container = self.client.containers.create(
                image,
                list(command[1:]),
                entrypoint=list(command[:1]),
                init=True,
                user=f"{os.getuid()}:{os.getgid()}",
                labels=self._labels,
                network_mode="none",
                volumes={str(folder): {"bind": str(folder), "mode": "rw"}},
            )
            try:
                container.start()
                code = int(container.wait()["StatusCode"])
                return code, container.logs().decode(errors="replace")
            finally:
                container.remove(force=True, v=True)

    def environment_of(self, image: str) -> list[str]:
        return list(self.client.images.get(image).attrs["Config"]["Env"] or [])

    def id_of(self, image: str) -> str:
        return str(self.client.images.get(image).id).removeprefix("sha256:")[:12]

    def close(self) -> None:
        with _complaining("the network cannot be removed"):
            self._network.remove()
        self.client.close()

    def _client_settings(self) -> dict[str, Any]:
        return {"environment": {**os.environ, "DOCKER_HOST": self.engine.url}}

    def _new_network(self) -> Network:
        taken = list(_networks_here())
        chance = random.Random(os.urandom(8))
        trouble = ""
        for _ in range(_TRIES):
            self._subnet = ipaddress.IPv4Network(
                f"10.{chance.randrange(128, 250)}.{chance.randrange(256)}.0/24"
            )
            if any(self._subnet.overlaps(other) for other in taken):
                continue
            gateway = str(self._subnet.network_address + 1)
            pool = IPAMPool(subnet=str(self._subnet), gateway=gateway)
            options = {"com.docker.network.bridge.enable_ip_masquerade": "false"}  # no access to outside
            if self.engine.own is not None:
                options["com.docker.network.bridge.name"] = self.engine.own.new_bridge()
            settings = {
                "driver": "bridge",
                "ipam": IPAMConfig(pool_configs=[pool]),
                "labels": self._labels,
                "options": options,
            }
            with _unchanged_environment():
                network = Network(self._client_settings(), settings)
            try:
                return network.create()
            except DockerException as error:  # another network has just taken these addresses
                trouble = _short(error)
        raise ClusterError(
            f"no network could be made for the cluster: {trouble or 'all addresses are taken'}"
        )


def host_pid(container: Container) -> int | None:
    """Return the pid of its first process on this machine; None if it does not run, or runs on another machine.

    An engine that onceproof started reports pids of its own namespace.
    """
    container.reload()
    pid = int(container.attrs["State"]["Pid"])
    if not pid:
        return None
    if _is_first_of(pid, str(container.id)):
        return pid
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return next((pid for pid in pids if _is_first_of(pid, str(container.id))), None)


def _is_first_of(pid: int, container: str) -> bool:
    try:
        if container not in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"):
            return False
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    counted = next((line.split() for line in status.splitlines() if line.startswith("NSpid:")), [])
    return counted[-1:] == ["1"]


@contextmanager
def _complaining(what: str) -> Iterator[None]:
    try:
        yield
    except DockerException as error:
        complain(what, error)


def complain(what: str, error: DockerException) -> NoReturn:
    """Raise the error as a ClusterError of one line."""
    raise ClusterError(f"{what}: {_short(error)}") from error


def _short(error: DockerException) -> str:
    text = getattr(error, "explanation", None) or str(error)
    return " ".join(str(text).split())[:300]


@contextmanager
def _unchanged_environment() -> Iterator[None]:
    """Restore the environment: testcontainers writes the host that it finds into it, as if the user had set it."""
    before = os.environ.get("DOCKER_HOST")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("DOCKER_HOST", None)
        else:
            os.environ["DOCKER_HOST"] = before


def _networks_here() -> Iterator[ipaddress.IPv4Network]:
    """Yield the networks that this machine has routes to, without the default route."""
    for line in _ROUTES.read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        address, mask = (int.from_bytes(bytes.fromhex(words[n]), "little") for n in (1, 7))
        if mask:
            yield ipaddress.IPv4Network((address, mask.bit_count()), strict=False)
