"""An independent cluster, like an operator's: a separate process, which tests reach only by its files.

`python -m suites.support.standing FOLDER` starts one with TLS and SASL, writes client.properties and powers.toml into the folder,
prints its bootstrap servers and runs until its stdin ends. The commands of the powers are `… FOLDER ACT NODE`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.clusters.local import LocalCluster

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = {
    "kill": signal.SIGKILL,
    "pause": signal.SIGSTOP,
    "resume": signal.SIGCONT,
    "shut_down": signal.SIGTERM,
}


@dataclass(frozen=True)
class Standing:
    folder: Path
    bootstrap: str

    @property
    def client_config(self) -> Path:
        return self.folder / "client.properties"

    @property
    def powers(self) -> Path:
        return self.folder / "powers.toml"

    @property
    def password(self) -> str:
        return (self.folder / "password").read_text(encoding="ascii")

    def words(self) -> list[str]:
        """Return the words of a command line that uses the cluster, without its powers."""
        return [
            "--cluster", "existing", "--bootstrap", self.bootstrap, "--client-config", str(self.client_config)
        ]  # fmt: skip


@contextmanager
def standing(folder: Path) -> Iterator[Standing]:
    """Start a cluster in a separate process; it ends with the test, even if that is killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "suites.support.standing", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            bootstrap = process.stdout.readline().strip()
            assert bootstrap, "it did not start"
            yield Standing(folder, bootstrap)
        finally:
            process.stdin.close()
            process.wait(60)


def serve(folder: Path) -> None:
    from harness.clusters.local import LocalCluster
    from harness.contracts import Lane

    cluster = LocalCluster(folder / "cluster", combined=True, security="sasl_ssl")
    with cluster, socket.create_server(("127.0.0.1", 0)) as server:
        (folder / "port").write_text(str(server.getsockname()[1]), encoding="ascii")
        _write_files(
            folder, {str(key): str(value) for key, value in cluster.client_settings(Lane.CONTROL).items()}
        )
        threading.Thread(target=_restart_on_request, args=(server, cluster), daemon=True).start()
        print(cluster.bootstrap_servers(Lane.CONTROL), flush=True)
        sys.stdin.read()


def _write_files(folder: Path, settings: dict[str, str]) -> None:
    """Write the files as a user has them: client.properties names a file with the password."""
    (folder / "password").touch(mode=0o600)
    (folder / "password").write_text(settings.pop("sasl.password"), encoding="ascii")
    settings["sasl.password"] = "${file:password}"
    lines = [f"{key}={value}\n" for key, value in settings.items()]
    (folder / "client.properties").write_text("".join(lines), encoding="utf-8")
    acts = [
        f'{act} = "{sys.executable} {__file__} {folder} {act} {{node}}"\n' for act in (*SIGNALS, "restart")
    ]
    (folder / "powers.toml").write_text("[powers]\nlimit_s = 120\n" + "".join(acts), encoding="utf-8")


def _restart_on_request(server: socket.socket, cluster: LocalCluster) -> None:
    """Only start a node, as an operator's command does: the caller checks that it has rejoined."""
    while True:
        connection, _ = server.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as lines:
            name = lines.readline().strip()
            for node in cluster._nodes:
                if node.name == name and not node.running():
                    node.launch()
            lines.write("done\n")


def act(folder: Path, what: str, node: str) -> int:
    if what != "restart":
        pid = json.loads((folder / "cluster" / node / "server.pid").read_text(encoding="ascii"))["pid"]
        os.kill(pid, SIGNALS[what])
        return 0
    port = int((folder / "port").read_text(encoding="ascii"))
    with socket.create_connection(("127.0.0.1", port), 100) as connection:
        connection.sendall(f"{node}\n".encode())
        return 0 if connection.recv(100) else 1


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(Path(sys.argv[1]))
    else:
        sys.exit(act(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
