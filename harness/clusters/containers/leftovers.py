"""Leftovers of container clusters on this machine: in a running engine, or of an engine that onceproof started."""

from __future__ import annotations

from harness.clusters.containers.labels import left_labelled, sweep_labelled
from harness.errors import SetupError
from harness.provision.docker.engine import find_engine
from harness.provision.docker.engine_folders import sweep_engines


def sweep_containers() -> list[str]:
    """Remove what belongs to a harness that has ended, without starting an engine.

    Returns what was removed, and what was left alone and why.
    """
    done = sweep_engines()
    try:
        found = find_engine()
    except SetupError:  # no engine answers at DOCKER_HOST: nothing can be left there
        return done
    if found is None:
        return done
    client = found.client()
    try:
        done += [f"{what}: removed, its harness was killed" for what in sweep_labelled(client)]
        return done + left_labelled(client)
    finally:
        client.close()
