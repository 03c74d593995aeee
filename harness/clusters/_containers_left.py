"""What clusters of containers may have left on this machine: in an engine that runs, or of an engine of our own."""

from __future__ import annotations

from harness.clusters._labels import sweep_labelled
from harness.errors import SetupError
from harness.provision.engine import find_engine
from harness.provision.engine_place import sweep_engines


def sweep_containers() -> list[str]:
    """Remove what is nobody's any more; says what. Starts no engine."""
    done = sweep_engines()
    try:
        found = find_engine()
    except SetupError:  # DOCKER_HOST leads nowhere: nothing can be left there
        return done
    if found is None:
        return done
    client = found.client()
    try:
        return [*done, *(f"{what}: removed, its harness was killed" for what in sweep_labelled(client))]
    finally:
        client.close()
