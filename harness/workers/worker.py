"""A worker process: start, kill, pause and watch it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from harness.contracts import Counters, MemberSpec, SenderSpec, WorkerSpec
from harness.errors import OnceproofError, UsageError
from harness.kafka.client_settings import named
from harness.ledger.journal import EventLog
from harness.ledger.reading import file_sizes
from harness.ledger.rundir import RunDir
from harness.processes import child_process
from harness.workers import client_version as workers_client_version
from harness.workers.breakpoints import Moment, Moments
from harness.workers.counters import Board, last_positions
from harness.workers.endings import WorkerEnding
from harness.workers.main import LOADED_CLIENT
from harness.workers.session_numbers import next_incarnation
from harness.workers.spec_file import write_spec
from harness.workers.standby import Standby

ROOT = Path(__file__).resolve().parents[2]
_PIPE_BYTES = 64 * 1024  # capacity of a pipe that is not read yet


class Worker:
    """One worker process and its restarts. A restart is a new life with its own journals.

    The harness remembers the signals that it sent. If the process ends by another signal, or before it was asked to, an `error`
    event is recorded as soon as that is noticed: at a check, a restart, a kill or the end of the run.

    `security` is the result of Cluster.client_settings. It may contain secrets, so it is in no file, argument or environment: the
    process reads it from a pipe at its start. `standby` may have a process that is already started; a client library other than
    the installed one needs a new process.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        run: RunDir,
        events: EventLog,
        security: Mapping[str, Any] = {},
        standby: Standby | None = None,
    ) -> None:
        self.spec, self._run, self._events = spec, run, events
        self._security, self._standby = dict(security), standby
        self._process: subprocess.Popen[bytes] | None = None
        self._boards: list[Board] = []
        self._sent: set[int] = set()  # signals that may end this life
        self._trouble: str | None = None  # error at the end of this life; None: the end is not recorded yet

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def role(self) -> str:
        return self.spec.role

    @property
    def transactional_id(self) -> str:
        return self.spec.transactional_id if isinstance(self.spec, SenderSpec) else ""

    @property
    def stays_in_group(self) -> bool:
        return self.spec.stays_in_group

    @property
    def client_settings(self) -> Mapping[str, Any]:
        return named(self.spec.consumer) if isinstance(self.spec, MemberSpec) else {}

    def start(self) -> None:
        self._record_end()
        writer = f"{self.name}.{len(self._boards)}"
        board = self._run.logs / f"{writer}.board"
        spec_file = self._run.logs / f"{writer}.json"
        this_life = replace(
            self.spec,
            writer=writer,
            ledger=str(self._run.ledger),
            board=str(board),
            incarnation=next_incarnation(self._run.ledger, self.name),
            security_on_stdin=bool(self._security),
        )
        write_spec(spec_file, this_life)
        self._boards.append(Board(board))
        # Created here, so that every life has this file, even if it is killed before it opens its ledger.
        (self._run.ledger / f"{writer}.events").touch()
        self._sent, self._trouble = set(), None
        self._process = self._launch(spec_file, writer)
        self._events.write(
            "worker", name=self.name, state="started", pid=self._process.pid, writes_as=writer, role=self.role
        )

    def _launch(self, spec_file: Path, writer: str) -> subprocess.Popen[bytes]:
        log, pidfile = self._run.logs / f"{writer}.out", self._run.logs / f"{writer}.pid"
        client_version = self.spec.client_version
        if self._standby is not None and self.spec.client == LOADED_CLIENT and not client_version:
            process = self._standby.begin(spec_file, log, self._security)
            if process is not None:
                child_process.write_pidfile(pidfile, process)
                return process
        with _pipe(json.dumps(self._security).encode()) as settings:
            return child_process.spawn(
                self.command(spec_file),
                log=log,
                cwd=ROOT,
                env=environment(client_version),
                pidfile=pidfile,
                stdin=settings,
            )

    def command(self, spec_file: Path) -> list[str | Path]:
        """Return the command that starts the process. A subclass may put a wrapper before it that keeps the pid."""
        return [sys.executable, "-m", "harness.workers.main", spec_file]

    @property
    def board(self) -> Board:
        """The board of the process that was started last."""
        return self._boards[-1]

    # --- powers ---

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._sent.add(signal.SIGKILL)
            child_process.end(self._process)
        self._record_end()

    def restart(self) -> None:
        if not self.running():
            self.start()

    def pause(self) -> None:
        if self.running():
            assert self._process is not None
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.running():
            assert self._process is not None
            self._process.send_signal(signal.SIGCONT)

    def paused(self) -> bool:
        return self.running() and child_process.is_stopped(self._process.pid if self._process else 0)

    def stop_at(self, moment: str) -> None:
        self._moments.stop_at(Moment(moment))

    def waits(self) -> bool:
        return self._moments.reached()

    def go_on(self) -> None:
        self._moments.go_on()

    @property
    def _moments(self) -> Moments:
        return Moments(self.board.path)

    # --- watching ---

    def counters(self) -> Counters:
        shown = [board.read() for board in self._boards]
        return Counters(*(sum(getattr(c, name) for c in shown) for name in Counters.__dataclass_fields__))

    def worked_on(self) -> Mapping[int, int]:
        return last_positions(self._run.ledger / f"{self.name}.{len(self._boards) - 1}.deliveries")

    def check(self) -> None:
        """Raise if the process has ended by itself, or by a signal that the harness did not send."""
        if trouble := self._record_end():
            raise OnceproofError(trouble)

    def ask_to_stop(self) -> None:
        if self.running():
            assert self._process is not None
            self._sent.add(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)  # a paused process would not react
            self._process.terminate()

    def wait(self, timeout_s: float) -> None:
        """Wait for the end. A worker that does not end in time is killed; its ledger survives that."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self._events.write(
                "error", where=self.name, text=f"did not stop within {timeout_s:g} s and was killed"
            )
            return
        self._record_end()

    def _record_end(self) -> str:
        """Record how the process ended, once. Return the error; empty if there is none or the process still runs."""
        code = None if self._process is None else self._process.poll()
        if self._process is None or code is None:
            return ""
        if self._trouble is None:
            writer = f"{self.name}.{len(self._boards) - 1}"
            ending = WorkerEnding(code, self._sent)
            log = self._run.logs / f"{writer}.out"
            self._trouble = ending.trouble(self.name, self.spec.ends_by_itself, log, self._run.ledger)
            # A process that ended in an orderly way has counted its rows itself. For the others record the sizes of the files.
            more = {} if code == 0 else {"files": file_sizes(self._run.ledger, writer)}
            self._events.write(
                "worker", name=self.name, state=ending.state, pid=self._process.pid, writes_as=writer, exit=code, **more
            )  # fmt: skip
            if self._trouble:
                self._events.write("error", where=self.name, text=self._trouble)
        return self._trouble


def environment(client_version: str = "") -> dict[str, str]:
    """The environment of a worker process."""
    return {
        **os.environ,
        **workers_client_version.environment(client_version),
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _pipe(words: bytes) -> IO[bytes]:
    """Return the reading end of a pipe that contains these words and then ends."""
    if len(words) > _PIPE_BYTES:
        raise UsageError(f"client settings: {len(words)} bytes; the limit is {_PIPE_BYTES}")
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as end:
        end.write(words)
    return os.fdopen(reading, "rb")
