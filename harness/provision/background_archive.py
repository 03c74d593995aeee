"""Spark's class archive, made next to a command that takes minutes: the next start has it without `./onceproof setup`.

`prove` and `matrix` start making it when it is missing. `reconcile` and `judge` do not: they end before it could be ready,
and two cores are better used for the verdict; they report in one line that it is missing.

A separate process (`python -m harness.provision.background_archive`) makes it with the lowest priority and dies with the
command. It does the same work as the set-up, under the same lock: the process of a second command waits, then finds the
archive, or makes it if the first was killed. No process can use the archive before it is complete, and the session of the
command itself goes on without.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import OnceproofError, WaitTimeout
from harness.processes import child_process
from harness.provision import spark_archive
from harness.runtime.cache import Progress, log_file, silent
from harness.waiting import wait_until

WAIT_S = 60.0
MEMORY_NEEDED_MIB = (
    3072  # for Spark's second JVM and for everything that the command itself is about to start
)
_LOWEST = 19
_MODULE = "harness.provision.background_archive"


@dataclass
class Making:
    """A process that makes the archive."""

    process: subprocess.Popen[bytes]
    progress: Progress

    def finish(self, limit_s: float = WAIT_S) -> None:
        """Wait for the archive, at most `limit_s`, then give it up. Call it after the results are printed.

        Waiting is better than giving up at once: the cluster has stopped, so the rest takes seconds, while a short
        `prove` that always gave up would do most of the work each time and never get an archive. The limit is for
        machines that are busy with other work. Ctrl-C ends the wait and does not change the results.
        """
        try:
            if self.process.poll() is None:
                self.progress(
                    f"the results are complete; waiting up to {limit_s:.0f} s for a class archive for Spark, which is "
                    "made once; Ctrl-C skips that"
                )
                wait_until(lambda: self.process.poll() is not None, limit_s, "a class archive for Spark")
        except (WaitTimeout, KeyboardInterrupt):
            self.give_up()
            self.progress(without("it was not ready in time"))
        else:
            if spark_archive.find_spark_archive() is None:
                self.progress(without(spark_archive.obstacle() or "it could not be made"))

    def give_up(self) -> None:
        """End the process. The next one removes its partial files."""
        with suppress(OnceproofError):
            child_process.end(self.process)


def make_in_background(progress: Progress, memory_needed_mib: int = MEMORY_NEEDED_MIB) -> Making | None:
    """Start making a missing archive; return None if it exists, or if `progress` got the reason why not."""
    if spark_archive.find_spark_archive() is not None:
        return None
    if reason := spark_archive.obstacle() or _little_memory(memory_needed_mib):
        progress(without(reason))
        return None
    try:
        process = child_process.spawn(
            [sys.executable, "-P", "-m", _MODULE],
            log=log_file(spark_archive.NAME),
            env={**os.environ, "PYTHONPATH": spark_archive.with_harness()},
        )
    except (OnceproofError, OSError) as error:
        progress(without(str(error)))
        return None
    return Making(process, progress)


def without(reason: str) -> str:
    """Return the line about a missing archive: its cost, the reason and the remedy."""
    return f"no class archive for Spark, so its start takes some seconds longer ({reason}); ./onceproof setup makes one"


def yield_to_others(pid: int | None = None) -> None:
    """Give this process the lowest priority; with a pid, give it to the session of that process.

    If the kernel groups processes by session, niceness counts only within a group, so the group needs it too.
    """
    if pid is None:
        os.nice(_LOWEST)
    elif os.getpriority(os.PRIO_PROCESS, 0) < _LOWEST:
        return
    with suppress(OSError):
        Path(f"/proc/{pid or 'self'}/autogroup").write_text(str(_LOWEST), encoding="ascii")


def _little_memory(needed_mib: int) -> str | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:") and (mib := int(line.split()[1]) >> 10) < needed_mib:
                return f"{mib} MiB of memory available, {needed_mib} are needed to make one next to a cluster"
    return None


def main() -> int:
    yield_to_others()
    return 0 if spark_archive.spark_archive(silent) is not None else 1


if __name__ == "__main__":
    sys.exit(main())
