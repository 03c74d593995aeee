"""What clusters of containers may have left on this machine: in an engine that runs, or of an engine of our own."""

from __future__ import annotations

from harness.clusters.containers.labels import left_labelled, sweep_labelled
from harness.errors import SetupError
from harness.provision.docker.engine import find_engine
from harness.provision.docker.engine_folders import sweep_engines


def sweep_containers() -> list[str]:
    """Remove what belongs to a harness that has ended; says what, and what was left alone and why. Starts no engine."""
    done = sweep_engines()
    try:
        found = find_engine()
    except SetupError:  # DOCKER_HOST leads nowhere: nothing can be left there
        return done
    if found is None:
        return done
    client = found.client()
    try:
        done += [f"{what}: removed, its harness was killed" for what in sweep_labelled(client)]
        return done + left_labelled(client)
    finally:
        client.close()
