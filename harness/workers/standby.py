"""Worker processes that are started ahead of time: Python and its libraries are already loaded when a run needs them.

A standby process waits for an order on its standard input: the file with its specification, the file for its output, and the
security settings of its clients. It ends when the pipe closes without an order, and like every process it dies with the harness.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from harness.errors import OnceproofError
from harness.processes import child_process
from harness.workers.main import WAITS

ROOT = Path(__file__).resolve().parents[2]
READY = 5  # two producers, two consumers and a final reader, as most runs have them
_PAUSE_S = 0.3  # between two starts, so that they do not take all cores from the run that is under way


class Standby:
    """Keeps some processes ready after the first one was asked for. `folder` appears in their command lines."""

    def __init__(self, folder: Path, environment: Mapping[str, str], size: int = READY) -> None:
        self._folder, self._environment, self._size = folder, dict(environment), size
        self._ready: deque[subprocess.Popen[bytes]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._filling: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that still wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._filling is not None:
            self._filling.join()
        while self._ready:
            _end(self._ready.popleft())

    def begin(
        self, spec_file: Path, log: Path, security: Mapping[str, Any]
    ) -> subprocess.Popen[bytes] | None:
        """Give a waiting process its order. None: no process is ready, the caller has to start one."""
        order = json.dumps({"spec": str(spec_file), "log": str(log), "security": dict(security)}) + "\n"
        while (process := self._take()) is not None:
            assert process.stdin is not None
            try:
                process.stdin.write(order.encode())
                process.stdin.close()
            except BrokenPipeError:  # it has ended meanwhile
                _end(process)
                continue
            return process
        return None

    def _take(self) -> subprocess.Popen[bytes] | None:
        with self._changed:
            if self._filling is None:
                self._filling = threading.Thread(target=self._fill, name="standby", daemon=True)
                self._filling.start()
            process = self._ready.popleft() if self._ready else None
            self._changed.notify_all()
        return process

    def _fill(self) -> None:
        while True:
            time.sleep(_PAUSE_S)
            with self._changed:
                self._changed.wait_for(lambda: self._closed or len(self._ready) < self._size)
                if self._closed:
                    return
            try:
                process = child_process.spawn(
                    [sys.executable, "-m", "harness.workers.main", WAITS, self._folder],
                    log=None,
                    cwd=ROOT,
                    env=self._environment,
                    stdin=subprocess.PIPE,
                )
            except (OSError, OnceproofError):
                return  # every worker is then started when it is needed, and the reason is reported there
            with self._changed:
                self._ready.append(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    child_process.end(process)
