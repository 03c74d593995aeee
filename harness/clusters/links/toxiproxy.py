"""One Toxiproxy for all links of a cluster, and a thin adapter over `toxiproxy-python`.

That library keeps host and port in a class that all users share, sets no time limits, ignores 5xx answers and
obeys HTTP_PROXY. The adapter gives each server its own subclass and fixes the rest; it does not use the library's
`Toxiproxy` and `Proxy` classes, which depend on the shared class.
"""

from __future__ import annotations

import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import requests
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from harness.clusters.links.mesh import Port, Route
from harness.errors import ClusterError, WaitTimeout
from harness.processes import child_process
from harness.waiting import wait_until

_CALL_LIMIT_S = 5.0
_START_LIMIT_S = 20.0


class Toxiproxy(ABC):
    """A server with one proxy for each route; `add` and `remove` toxics of a proxy by its name.

    Each kind of Toxiproxy (a process, a container) implements how it is launched and ended.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        self._folder = folder
        self._api: Any = type("Api", (APIConsumer,), {"host": address, "port": int(Port.TOXIPROXY)})

    @property
    def log(self) -> Path:
        return self._folder / "toxiproxy.log"

    @property
    @abstractmethod
    def pid(self) -> int | None: ...

    @abstractmethod
    def launch(self, config: Path) -> None: ...

    @abstractmethod
    def running(self) -> bool: ...

    @abstractmethod
    def stop(self) -> None: ...

    def listen_address(self, route: Route) -> str:
        """Return the address that it binds; it differs from the route's where traffic is forwarded to it."""
        return route.listen

    def start(self, routes: Iterable[Route]) -> None:
        """Start the server; return when every proxy listens."""
        wanted = [
            {"name": r.proxy, "listen": self.listen_address(r), "upstream": r.upstream, "enabled": True}
            for r in routes
        ]
        config = self._folder / "toxiproxy.json"
        config.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
        self.launch(config)
        try:
            wait_until(lambda: self._listening(len(wanted)), _START_LIMIT_S, "no answer from Toxiproxy's API")
        except WaitTimeout as error:
            raise ClusterError(f"Toxiproxy did not start: {error}; see {self.log}") from error

    def add(self, proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, int]) -> None:
        """Apply a toxic to the direction `stream` of open connections and of new ones."""
        toxic = {
            "name": name,
            "type": kind,
            "stream": stream,
            "toxicity": 1.0,
            "attributes": dict(attributes),
        }
        try:
            self._call("post", f"/proxies/{proxy}/toxics", json=toxic)
        except ProxyExists:  # also raised for a toxic: it exists already
            return

    def remove(self, proxy: str, name: str) -> None:
        """Remove a toxic, if it exists. Connections that a `timeout` held are closed."""
        try:
            self._call("delete", f"/proxies/{proxy}/toxics/{name}")
        except NotFound:
            return

    def cuts(self, proxy: str) -> set[str]:
        """Return the streams (upstream, downstream) that are cut now."""
        toxics = self._call("get", f"/proxies/{proxy}/toxics").json()
        return {toxic["stream"] for toxic in toxics if toxic["type"] == "timeout"}

    def retarget(self, proxy: str, upstream: str) -> None:
        """Lead a proxy to another address. Toxiproxy closes its connections; clients reconnect to the new address."""
        self._call("post", f"/proxies/{proxy}", json={"upstream": upstream})

    def upstreams(self) -> dict[str, str]:
        """Return the upstream of each proxy; empty when Toxiproxy does not run."""
        if not self.running():
            return {}
        return {name: proxy["upstream"] for name, proxy in self._call("get", "/proxies").json().items()}

    def toxics(self) -> list[str]:
        """List all toxics in place, a few words each."""
        if not self.running():
            return []
        proxies = self._call("get", "/proxies").json()
        return [
            f"toxic {toxic['name']} on {name}"
            for name, proxy in sorted(proxies.items())
            for toxic in proxy["toxics"]
        ]

    def _listening(self, proxies: int) -> bool:
        if not self.running():
            raise ClusterError(f"Toxiproxy has ended; see {self.log}")
        try:
            # The API is up before the proxies of the config are; a proxy is listed once it listens.
            return len(self._call("get", "/proxies").json()) >= proxies
        except ClusterError:
            return False

    def _call(self, verb: str, path: str, **arguments: Any) -> requests.Response:
        try:
            answer: requests.Response = getattr(self._api, verb)(
                path, timeout=_CALL_LIMIT_S, proxies={"http": ""}, **arguments
            )
            answer.raise_for_status()
        except InvalidToxic as error:
            raise ClusterError(f"Toxiproxy refused {verb} {path}: {error}") from error
        except requests.RequestException as error:
            raise ClusterError(f"Toxiproxy at {self._address} failed on {verb} {path}: {error}") from error
        return answer


class ToxiproxyProcess(Toxiproxy):
    """Toxiproxy as a process of this machine, which dies with the harness."""

    def __init__(self, program: Path, address: str, folder: Path) -> None:
        super().__init__(address, folder)
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def launch(self, config: Path) -> None:
        self._process = child_process.spawn(
            [self._program, "-host", self._address, "-port", str(int(Port.TOXIPROXY)), "-config", config],
            log=self.log,
            pidfile=self._folder / "toxiproxy.pid",
        )

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        if self._process is not None:
            child_process.end(self._process)
            (self._folder / "toxiproxy.pid").unlink(missing_ok=True)
            self._process = None
