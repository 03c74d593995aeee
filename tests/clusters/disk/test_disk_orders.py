"""Orders to the file system under a broker's data folder, over its socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clusters.disk import faulty_file_system
from harness.clusters.disk.faulty_file_system import Disk
from harness.clusters.disk.mount import Mount
from harness.errors import FaultError


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = os.open(tmp_path, os.O_RDONLY)
    yield Disk(folder)
    os.close(folder)


def test_orders_come_over_a_socket_and_bad_ones_are_answered(disk: Disk, tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / faulty_file_system.SOCKET))
    listener.listen()
    threading.Thread(target=faulty_file_system.serve, args=(listener, disk), daemon=True).start()
    mount = Mount(tmp_path, tmp_path)
    assert mount.ask("status") == {"mounted": False, "harms": [], "unsynced_bytes": 0}
    mount.ask("be", orders=[{"harm": "full", "delay_ms": 0, "prefixes": ["orders"]}])
    assert mount.ask("status")["harms"] == ["full"]
    with pytest.raises(FaultError, match="unknown order 'dance'"):
        mount.ask("dance")
    with pytest.raises(FaultError, match=r"refused be.*KeyError"):
        mount.ask("be")


def test_orders_are_answered_after_a_client_has_gone_without_its_answer(disk: Disk, tmp_path: Path) -> None:
    client, server = socket.socketpair()
    client.sendall(b'{"do": "status"}\n')
    client.close()  # before the answer
    with pytest.raises(StopIteration):  # not an OSError about the first connection
        faulty_file_system.serve(_Listener(server), disk)  # type: ignore[arg-type]


class _Listener:
    """Accepts these connections, then no more."""

    def __init__(self, *connections: socket.socket) -> None:
        self._connections = iter(connections)

    def accept(self) -> tuple[socket.socket, None]:
        return next(self._connections), None
