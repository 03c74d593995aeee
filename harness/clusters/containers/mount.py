"""A broker's file system in the namespace of an engine that onceproof started, so that containers see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.clusters.disk.mount import Mount
from harness.errors import FaultError
from harness.provision.docker.engine import Engine

_LIMIT_S = 10.0


class EngineMount(Mount):
    """A mount in the engine's namespace, which ends with it. Other engines would keep it when the harness is killed."""

    def __init__(self, node: Path, data: Path, engine: Engine) -> None:
        super().__init__(node, data)
        self._engine = engine

    def end(self) -> None:
        """Unmount, after the container has ended."""
        super().end()
        if self._engine.own is None or not self._engine.own.runs():
            return  # the mount has ended with the engine
        # In the engine's pid namespace too: umount looks itself up in /proc.
        words = [*self._enter(), "--pid", "--", "umount", "--lazy", str(self._data)]
        subprocess.run(words, capture_output=True, timeout=_LIMIT_S, check=False)  # it may not be mounted

    def _where(self) -> list[str]:
        # Entering a mount namespace changes to its root folder.
        return [*self._enter(), "--", "/bin/sh", "-c", 'cd "$0" && exec "$@"', str(self._node)]

    def _enter(self) -> list[str]:
        pid = self._engine.own.pid if self._engine.own is not None else None
        if pid is None:
            raise FaultError(
                f"{self._data} cannot be put behind FUSE: no Docker engine was started by onceproof"
            )
        return ["nsenter", "--target", str(pid), "--mount"]
