"""Act inside the network of another process, such as a container's."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from harness.errors import FaultError

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def in_network_of(pid: int, act: Callable[[], T]) -> T:
    """Act in a new thread, which alone enters that network; only root may.

    Sockets stay in the network in which they were made, even if other threads use them later. Programs that are run
    there are in it too. Raises ProcessLookupError if the process has ended.
    """

    def entered() -> T:
        _enter(pid)
        return act()

    with ThreadPoolExecutor(1, "network") as thread:
        return thread.submit(entered).result()


def _enter(pid: int) -> None:
    try:
        with Path(f"/proc/{pid}/ns/net").open("rb") as network:
            if _libc.setns(network.fileno(), _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
    except FileNotFoundError:
        raise ProcessLookupError(f"process {pid} has ended") from None
    except OSError as error:
        raise FaultError(
            f"the network of process {pid} cannot be entered: {error.strerror}; run as root"
        ) from error
