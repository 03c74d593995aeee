"""Labels on everything that the harness makes in a Docker engine, so that leftovers of a killed harness can be removed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound

from harness.processes.identity import Identity, from_fields, own_identity

if TYPE_CHECKING:
    import docker

OWNER = "onceproof.owner"
FOLDER = "onceproof.folder"


def labels(folder: Path) -> dict[str, str]:
    """Return the labels for everything of one cluster: its harness, and the folder of its data."""
    return {OWNER: json.dumps(vars(own_identity())), FOLDER: str(folder)}


def sweep_labelled(client: docker.DockerClient) -> list[str]:
    """Remove the containers, networks and volumes of harnesses that have ended; return their names."""
    done = []
    labelled: dict[str, str | list[str] | bool] = {"label": OWNER}
    for container in client.containers.list(all=True, filters=labelled, ignore_removed=True):
        if _is_abandoned(container.labels):
            with suppress(NotFound, APIError):  # another start may be removing it
                container.remove(force=True, v=True)
                done.append(f"container {container.name}")
    for network in client.networks.list(filters=labelled):
        if _is_abandoned(network.attrs.get("Labels") or {}):
            with suppress(NotFound, APIError):
                network.remove()
                done.append(f"network {network.name}")
    for volume in client.volumes.list(filters=labelled):
        if _is_abandoned(volume.attrs.get("Labels") or {}):
            with suppress(NotFound, APIError):
                volume.remove(force=True)
                done.append(f"volume {volume.name}")
    return done


def left_labelled(client: docker.DockerClient) -> list[str]:
    """List the containers of harnesses that may still run, one line for each reason."""
    found = client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
    reasons: dict[str, list[str]] = defaultdict(list)
    for container in found:
        owner = _owner(container.labels)
        if reason := owner.foreign() if owner is not None else f"its label {OWNER} is not of this version":
            reasons[reason].append(str(container.name))
    return [
        f"{len(names)} container(s): left alone, {reason}; if no run uses them: docker rm -fv {' '.join(names)}"
        for reason, names in reasons.items()
    ]


def _is_abandoned(found: Mapping[str, str]) -> bool:
    # An engine may serve several machines, and a harness in another container has its own pids.
    owner = _owner(found)
    return owner is not None and owner.ended()


def _owner(found: Mapping[str, str]) -> Identity | None:
    try:
        return from_fields(json.loads(found[OWNER]))
    except (KeyError, ValueError):
        return None  # not made by onceproof
