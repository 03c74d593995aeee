"""A block of loopback addresses, 127.B.0.0/16, that belongs to one cluster on this machine.

The lock on a block is a bound socket inside it: the kernel keeps it exclusive among all users and releases it
when its owner dies, however that happens. A lock file could do neither for another user's processes.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterable

from harness.errors import ClusterError

_FIRST, _LAST = 16, 250  # 127.0.*.* is left to other programs
_LOCK_PORT = 21089


class Block:
    """One block, reserved from `take` until `release` or the end of the process."""

    def __init__(self, number: int, lock: socket.socket) -> None:
        self.number = number
        self._lock = lock

    def release(self) -> None:
        self._lock.close()


def take(ports: Iterable[int]) -> Block:
    """Reserve the first free block, starting at a random one, on which all `ports` are free."""
    wanted = list(ports)
    numbers = list(range(_FIRST, _LAST + 1))
    start = random.Random(os.urandom(8)).randrange(len(numbers))
    taken: set[int] = set()
    for number in numbers[start:] + numbers[:start]:
        lock = _bind(f"127.{number}.0.1", _LOCK_PORT)
        if lock is None:
            continue
        # A process of a harness that has just died may end a moment later than its lock.
        busy = {port for port in wanted if not _free(f"127.{number}.1.1", port)}
        if not busy:
            return Block(number, lock)
        lock.close()
        taken |= busy
    why = f"another program holds port {min(taken)} on all addresses" if taken else "all are held by clusters"
    raise ClusterError(f"no loopback block 127.{_FIRST}-{_LAST}.0.0/16 is free: {why}")


def _free(address: str, port: int) -> bool:
    probe = _bind(address, port)
    if probe is None:
        return False
    probe.close()
    return True


def _bind(address: str, port: int) -> socket.socket | None:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.bind((address, port))
    except OSError:
        bound.close()
        return None
    return bound
