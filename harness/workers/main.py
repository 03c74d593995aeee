"""One process hosting one role with one client, so that it can be killed or paused.

Called as `python -m harness.workers.main SPEC.json`, or without a specification, to wait for it (harness.workers.standby). SIGTERM asks it to
finish in an orderly way. Its exit code is 0 when the role ended by itself or as asked, 1 when it failed, NO_LEDGER when it could
not write its ledger. The reason is in its events where they can be written, and in one line at the end of its output. What its
clients need to get in, which may be secret, comes through stdin.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness import registry
from harness.contracts import Versioned
from harness.errors import LedgerError, OnceproofError
from harness.ledger.journal import Ledger
from harness.machine import fake_clock
from harness.workers.counters import Board, ShownClock

NO_LEDGER = 74  # EX_IOERR of sysexits.h: said by the code alone, since nothing else may be writable
LOADED_CLIENT = "confluent"  # by a process that waits; another client may depend on its environment, which is fixed by then
WAITS = "--wait-for-order"  # instead of a specification; a folder follows, which only shows in the list of processes
_TELL_TIME_EVERY_S = 0.1


def run_role(spec: Mapping[str, Any], until: Callable[[], bool], client: Any = None) -> None:
    """Do the role's work; what goes wrong is in the ledger before it is raised."""
    client = client or registry.load("client", spec["client"])()
    role = registry.load("role", spec["role"])(spec, Board(Path(spec["board"])))
    with Ledger(Path(spec["ledger"]), spec["writer"]) as ledger:
        if isinstance(client, Versioned):
            ledger.events.write("library", versions=dict(client.versions()))
        try:
            role.work(client, ledger, until)
        except Exception as error:
            with suppress(LedgerError):  # on a full disk: this first error is the one to be known
                ledger.events.write("error", where=spec["name"], text=_in_words(error))
            raise


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, OnceproofError) else f"{type(error).__name__}: {error}"


def main(spec_file: str) -> int:
    spec = json.loads(Path(spec_file).read_text(encoding="utf-8"))
    if spec["security_on_stdin"]:
        spec["security"] = json.load(sys.stdin)
    return _work(spec)


def wait_for_order() -> int:
    """Load what workers need, then do what the order says that comes through stdin. Without one there is nothing to do."""
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
    spec = json.loads(Path(order["spec"]).read_text(encoding="utf-8"))
    return _work({**spec, "security": order["security"]})


def _work(spec: Mapping[str, Any]) -> int:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if spec.get("clock"):
        fake_clock.keep_waits_right()
        _tell_time(Board(Path(spec["board"])))
    try:
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
    """What could not be written must not fail once more when Python ends: the exit code would become 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell_time(board: Board) -> None:
    """Show the wall clock of this process for as long as it lives."""

    def tell() -> None:
        while True:
            board.show_clock(ShownClock(fake_clock.wall_minus_monotonic_s(), time.monotonic()))
            time.sleep(_TELL_TIME_EVERY_S)

    threading.Thread(target=tell, name="clock", daemon=True).start()


if __name__ == "__main__":
    sys.exit(wait_for_order() if sys.argv[1] == WAITS else main(sys.argv[1]))
