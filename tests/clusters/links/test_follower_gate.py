"""The gate in front of the peer port of a ZooKeeper server."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from harness.waiting import wait_until


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


def test_a_follower_that_connects_before_the_leader_listens_waits_and_gets_through() -> None:
    front, back = _free_port(), _free_port()
    command = [
        sys.executable,
        "-m",
        "harness.clusters.links.follower_gate",
        f"127.0.0.1:{front}",
        f"127.0.0.1:{back}",
    ]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3]) as gate:
        try:
            wait_until(lambda: _connects(front), 20.0, "the gate does not listen")
            with closing(socket.create_connection(("127.0.0.1", front), timeout=10.0)) as early:
                early.sendall(b"may I follow?")
                with closing(socket.create_server(("127.0.0.1", back))) as leading:
                    leading.settimeout(10.0)
                    taken = _said(leading, b"may I follow?")
                    with taken:
                        taken.sendall(b"yes")
                        assert early.recv(100) == b"yes"
                    assert early.recv(100) == b"", "when the leader closes, so does the gate"
        finally:
            gate.kill()


def _said(leading: socket.socket, words: bytes) -> socket.socket:
    """Return the connection on which these words arrive; the connection that checked the gate sends nothing."""
    while True:
        connection, _ = leading.accept()
        connection.settimeout(10.0)
        if connection.recv(100) == words:
            return connection
        connection.close()


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True
