"""Spark's class archive, made beside a command that takes minutes: the next start has it without `./onceproof setup`.

`prove` and `matrix` begin it when they find none. `reconcile` and `judge` do not: they end before it could be ready, and
two cores are better spent on the verdict; they report in one line that it is missing.

It is made by a process of its own (`python -m harness.provision.background_archive`) with the lowest priority, which dies
with the command. It is the same work as in the set-up, under the same lock: of two commands at once the second one's
process waits, finds the archive or makes it when the first was killed. Nothing can use it before it is whole, and the
session of the command itself goes on without.
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
MEMORY_NEEDED_MIB = 3072  # that of Spark's second JVM and of all that the command itself is about to start
_LOWEST = 19
_MODULE = "harness.provision.background_archive"


@dataclass
class Making:
    """An archive in the making."""

    process: subprocess.Popen[bytes]
    progress: Progress

    def finish(self, limit_s: float = WAIT_S) -> None:
        """Wait for the archive, at most `limit_s`; give it up then. To be called after the results are printed.

        Waiting is better than giving up at once: the cluster has stopped, so the rest takes seconds, while a short
        `prove` that always gave up would do most of the work each time and never have an archive. The limit is for
        machines that are busy with something else. Ctrl-C ends the wait and changes nothing about the results.
        """
        try:
            if self.process.poll() is None:
                self.progress(
                    f"making a class archive for Spark, once: waiting up to {limit_s:.0f} s; Ctrl-C skips that"
                )
                wait_until(lambda: self.process.poll() is not None, limit_s, "a class archive for Spark")
        except (WaitTimeout, KeyboardInterrupt):
            self.give_up()
            self.progress(without("it was not ready in time"))
        else:
            if spark_archive.find_spark_archive() is None:
                self.progress(without(spark_archive.obstacle() or "it could not be made"))

    def give_up(self) -> None:
        """End the process. What it has made so far is removed by the next one."""
        with suppress(OnceproofError):
            child_process.end(self.process)


def make_in_background(progress: Progress) -> Making | None:
    """Begin to make the archive where there is none; None where there is one, or where `progress` got the reason."""
    if spark_archive.find_spark_archive() is not None:
        return None
    if reason := spark_archive.obstacle() or _little_memory():
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
    """The line about a missing archive: what it costs and how to get one."""
    return f"no class archive for Spark, so its start takes some seconds longer ({reason}); ./onceproof setup makes one"


def yield_to_others(pid: int | None = None) -> None:
    """Give way to all other processes; with a pid, have the session of that process give way like this one does.

    Where the kernel groups processes by session, niceness counts only within a group, so the group needs it as well.
    """
    if pid is None:
        os.nice(_LOWEST)
    elif os.getpriority(os.PRIO_PROCESS, 0) < _LOWEST:
        return
    with suppress(OSError):
        Path(f"/proc/{pid or 'self'}/autogroup").write_text(str(_LOWEST), encoding="ascii")


def _little_memory() -> str | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:") and (mib := int(line.split()[1]) >> 10) < MEMORY_NEEDED_MIB:
                return f"{mib} MiB of memory available, {MEMORY_NEEDED_MIB} are needed to make one beside a cluster"
    return None


def main() -> int:
    yield_to_others()
    return 0 if spark_archive.spark_archive(silent) is not None else 1


if __name__ == "__main__":
    sys.exit(main())
