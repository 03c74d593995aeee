"""What the harness makes in a Docker engine carries its name, so that what a killed harness left can be told and removed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from harness import tether

if TYPE_CHECKING:
    import docker

OWNER = "onceproof.owner"
FOLDER = "onceproof.folder"


def labels(folder: Path) -> dict[str, str]:
    """For everything of one cluster: who made it, and where its data is."""
    own = tether.identify(os.getpid())
    assert own is not None
    return {OWNER: f"{own.pid} {own.start_ticks} {own.boot_id} {_numbering()}", FOLDER: str(folder)}


def sweep_labelled(client: docker.DockerClient) -> list[str]:
    """Remove the containers, networks and volumes whose harness is gone; says which."""
    done = []
    ours: dict[str, str | list[str] | bool] = {"label": OWNER}
    for container in client.containers.list(all=True, filters=ours, ignore_removed=True):
        if _is_nobodys(container.labels):
            with suppress(NotFound, APIError):  # another start may be at it
                container.remove(force=True, v=True)
                done.append(f"container {container.name}")
    for network in client.networks.list(filters=ours):
        if _is_nobodys(network.attrs.get("Labels") or {}):
            with suppress(NotFound, APIError):
                network.remove()
                done.append(f"network {network.name}")
    for volume in client.volumes.list(filters=ours):
        if _is_nobodys(volume.attrs.get("Labels") or {}):
            with suppress(NotFound, APIError):
                volume.remove(force=True)
                done.append(f"volume {volume.name}")
    return done


def _is_nobodys(told: Mapping[str, str]) -> bool:
    try:
        pid, start_ticks, boot_id, numbering = told[OWNER].split(" ")
        owner = tether.Identity(int(pid), int(start_ticks), boot_id)
    except (KeyError, ValueError):
        return False  # not by us
    # A harness in another container has pids of its own: nobody out here can tell whether it lives.
    return numbering == _numbering() and not owner.alive()


def _numbering() -> str:
    """Within which pids mean the same."""
    return str(Path("/proc/self/ns/pid").readlink())
