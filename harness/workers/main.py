"""One process hosting one role with one client, so that it can be killed or paused.

Called as `python -m harness.workers.main SPEC.json`, or without a specification, to wait for it (harness.workers.standby). SIGTERM asks it to
finish in an orderly way. Its exit code is 0 when the role ended by itself or as asked, 1 when it failed, NO_LEDGER when it could
not write its ledger. The reason is in its events, if they can be written, and in one line at the end of its output. The security
settings of its clients, which may be secret, come through stdin.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import registry
from harness.contracts import Versioned, WorkerSpec
from harness.errors import LedgerError, OnceproofError
from harness.ledger.journal import Ledger
from harness.machine import fake_clock
from harness.workers.counters import Board, ShownClock
from harness.workers.spec_file import read_spec

NO_LEDGER = 74  # EX_IOERR of sysexits.h: the code alone reports it, since nothing else may be writable
LOADED_CLIENT = "confluent"  # loaded by standby processes; another client may depend on the environment, which is fixed by then
WAITS = (
    "--wait-for-order"  # instead of a specification; the folder after it only makes the process list readable
)
_SHOW_CLOCK_EVERY_S = 0.1


def run_role(spec: WorkerSpec, until: Callable[[], bool], client: Any = None) -> None:
    """Do the role's work. An error is recorded in the ledger before it is raised."""
    client = client or registry.load("client", spec.client)()
    role = registry.load("role", spec.role)(spec, Board(Path(spec.board)))
    with Ledger(Path(spec.ledger), spec.writer) as ledger:
        if isinstance(client, Versioned):
            ledger.events.write("library", versions=dict(client.versions()))
        try:
            role.work(client, ledger, until)
        except Exception as error:
            with suppress(LedgerError):  # on a full disk: the first error is the one to report
                ledger.events.write("error", where=spec.name, text=_in_words(error))
            raise


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, OnceproofError) else f"{type(error).__name__}: {error}"


def main(spec_file: str) -> int:
    def read() -> WorkerSpec:
        spec = read_spec(Path(spec_file))
        return replace(spec, security=json.load(sys.stdin)) if spec.security_on_stdin else spec

    return _work(read)


def wait_for_order() -> int:
    """Load the modules that workers need, then carry out the order that comes through stdin; return 0 if none comes."""
    registry.load("client", LOADED_CLIENT)
    for name in registry.names("role"):
        registry.load("role", name)
    line = sys.stdin.readline()
    if not line:
        return 0
    order = json.loads(line)
    output = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    return _work(lambda: replace(read_spec(Path(order["spec"])), security=order["security"]))


def _work(read: Callable[[], WorkerSpec]) -> int:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        spec = read()
        if spec.fake_clock:
            fake_clock.keep_waits_right()
            _show_clock(Board(Path(spec.board)))
        run_role(spec, stop.is_set)
    except Exception as error:  # noqa: BLE001  the process ends here: the harness needs a code and a last line
        with suppress(OSError):  # the output may be on the disk that is full
            if not isinstance(error, OnceproofError):
                traceback.print_exc()
            print(_in_words(error), file=sys.stderr, flush=True)
        _drop_unwritten_output()
        return NO_LEDGER if isinstance(error, LedgerError) else 1
    return 0


def _drop_unwritten_output() -> None:
    """Discard output that could not be written. Python would fail to write it again at its end, with exit code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_clock(board: Board) -> None:
    """Show the wall clock of this process on its board, as long as the process runs."""

    def show() -> None:
        while True:
            board.show_clock(ShownClock(fake_clock.wall_minus_monotonic_s(), time.monotonic()))
            time.sleep(_SHOW_CLOCK_EVERY_S)

    threading.Thread(target=show, name="clock", daemon=True).start()


if __name__ == "__main__":
    sys.exit(wait_for_order() if sys.argv[1] == WAITS else main(sys.argv[1]))
