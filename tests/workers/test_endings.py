"""Ends of worker processes: as the harness wants, by themselves, or by a signal from outside. TRUST T10, E12."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LedgerError, OnceproofError, UsageError
from harness.ledger import journal, reading
from harness.ledger.journal import EventLog
from harness.ledger.rundir import RunDir
from harness.waiting import wait_until
from harness.workers import main
from harness.workers.pool import Workers
from harness.workers.roles import final_reader
from harness.workers.spec_file import write_spec
from harness.workers.worker import ROOT, Worker
from tests.workers.specs import SPECS

READY = "print('ready', flush=True); "
WORKS = f"import time; {READY} time.sleep(60)"
OBEYS = f"import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); {READY} signal.pause()"


class Scripted(Worker):
    """A worker whose process does something else."""

    script = WORKS

    def command(self, spec_file: Path) -> list[str | Path]:
        return [sys.executable, "-c", self.script]


class Place:
    def __init__(self, root: Path) -> None:
        self.run = RunDir.create(root, "ends")
        self.events = EventLog(self.run.ledger / "harness.events", "harness")
        self.made: list[Worker] = []

    def start(self, script: str = WORKS, role: str = "consumer", name: str = "consumer-1") -> Worker:
        made = Scripted(SPECS[role](name), self.run, self.events)
        made.script = script
        self.made.append(made)
        made.start()
        self.wait_ready(made)
        return made

    def wait_ready(self, made: Worker, life: int = 0) -> None:
        out = self.run.logs / f"{made.name}.{life}.out"
        wait_until(
            lambda: (out.exists() and "ready" in out.read_text()) or not made.running(), 30, "not ready"
        )

    def recorded(self, kind: str) -> list[dict[str, Any]]:
        return [e for e in reading.read_events(self.run.ledger / "harness.events") if e["event"] == kind]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for made in place.made:
        made.kill()


def end_from_outside(made: Worker, number: int) -> None:
    assert made._process is not None
    os.kill(made._process.pid, number)
    wait_until(lambda: not made.running(), 30, "it is still there")


def test_a_worker_that_the_harness_kills_is_no_error(place: Place) -> None:
    made = place.start()
    (place.run.ledger / "consumer-1.0.deliveries").write_bytes(b"x" * 50)
    made.kill()
    made.check()
    assert place.recorded("error") == []
    [started, killed] = place.recorded("worker")
    assert (started["state"], started["writes_as"], started["role"]) == (
        "started",
        "consumer-1.0",
        "consumer",
    )
    assert (killed["state"], killed["writes_as"], killed["exit"]) == (
        "killed",
        "consumer-1.0",
        -signal.SIGKILL,
    )
    assert killed["files"] == {"consumer-1.0.deliveries": 50, "consumer-1.0.events": 0}


@pytest.mark.parametrize("role", ["producer", "consumer", "copier", "observer", "final_reader"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_from_outside_is_an_error_when_checked(
    role: str, number: signal.Signals, place: Place
) -> None:
    made = place.start(role=role)
    end_from_outside(made, number)
    with pytest.raises(
        OnceproofError, match=f"worker consumer-1 was ended by {number.name}, which onceproof did not"
    ):
        made.check()
    with pytest.raises(OnceproofError):
        made.check()
    assert [number.name in e["text"] for e in place.recorded("error")] == [True], "once"
    assert [e["state"] for e in place.recorded("worker")] == ["started", "failed"]


def test_a_signal_from_outside_is_an_error_at_the_end(place: Place) -> None:
    made = place.start()
    end_from_outside(made, signal.SIGKILL)
    made.ask_to_stop()
    made.wait(5)
    assert len(place.recorded("error")) == 1


def test_a_signal_from_outside_is_an_error_without_a_further_check(place: Place) -> None:
    made = place.start()
    end_from_outside(made, signal.SIGKILL)
    with Workers([made]):
        pass
    assert len(place.recorded("error")) == 1


def test_a_fault_does_not_hide_a_signal_from_outside(place: Place) -> None:
    """kill_worker finds the worker already dead, and restarts it."""
    made = place.start()
    end_from_outside(made, signal.SIGKILL)
    made.kill()
    made.restart()
    place.wait_ready(made, 1)
    made.check()
    assert len(place.recorded("error")) == 1
    assert [(e["state"], e["writes_as"]) for e in place.recorded("worker")] == [
        ("started", "consumer-1.0"), ("failed", "consumer-1.0"), ("started", "consumer-1.1"),
    ]  # fmt: skip
    made.kill()
    assert len(place.recorded("error")) == 1


def test_a_worker_that_is_asked_to_stop_ends_without_an_error(place: Place) -> None:
    made = place.start(OBEYS)
    made.ask_to_stop()
    made.wait(30)
    made.check()
    assert place.recorded("error") == []
    assert place.recorded("worker")[-1]["state"] == "ended"


def test_a_stop_request_from_outside_is_an_error(place: Place) -> None:
    """SIGTERM from outside: the worker ends in an orderly way, but too early."""
    made = place.start(OBEYS)
    end_from_outside(made, signal.SIGTERM)
    with pytest.raises(OnceproofError, match="worker consumer-1 stopped before onceproof asked it to"):
        made.check()
    assert len(place.recorded("error")) == 1


def test_a_final_reader_ends_by_itself(place: Place) -> None:
    made = place.start(READY, role="final_reader")
    made.wait(30)
    made.check()
    assert place.recorded("error") == []


def test_a_failed_worker_reports_its_reason(place: Place) -> None:
    made = place.start("import sys; sys.exit('no such lie')")
    made.wait(30)
    with pytest.raises(
        OnceproofError, match=r"worker consumer-1 failed: no such lie \(see .*consumer-1\.0\.out\)"
    ):
        made.check()


@pytest.mark.parametrize("said", ["w.events: cannot append to the ledger (No space left on device)", ""])
def test_a_worker_that_cannot_write_its_ledger_reports_it_by_its_exit_code(said: str, place: Place) -> None:
    made = place.start(f"import sys; print({said!r}, file=sys.stderr); sys.exit({main.NO_LEDGER})")
    made.wait(30)
    with pytest.raises(
        OnceproofError, match=said.partition("(")[0] or r"ledger: not writable; free some disk space"
    ):
        made.check()


@pytest.mark.parametrize("output", ["out", "/dev/full"])
def test_a_worker_on_a_full_disk_ends_with_its_reason(output: str, tmp_path: Path) -> None:
    """TRUST R3: even if neither its events nor its output can be written."""
    (tmp_path / "r.0.events").symlink_to("/dev/full")
    spec = replace(
        SPECS["final_reader"]("r"), writer="r.0", ledger=str(tmp_path), board=str(tmp_path / "board")
    )
    write_spec(tmp_path / "spec.json", spec)
    with (tmp_path / output).open("wb", buffering=0) as out:
        command = [sys.executable, "-m", "harness.workers.main", str(tmp_path / "spec.json")]
        done = subprocess.run(command, stdout=out, stderr=out, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == main.NO_LEDGER
    if output == "out":
        (line,) = (tmp_path / output).read_text().splitlines()
        assert line.startswith(
            f"{tmp_path / 'r.0.events'}: cannot append to the ledger (No space left on device); "
        )
        assert "--runs" in line


def test_two_workers_with_one_number_are_refused(place: Place) -> None:
    """TRUST T2: their sessions would have the same numbers."""
    specs = [SPECS["producer"](f"producer-{n}") for n in (1, 2)]
    with pytest.raises(UsageError, match="two workers of this workload have the number 1"):
        Workers([Worker(spec, place.run, place.events) for spec in specs])


def test_a_full_ledger_does_not_hide_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaks:
        def __init__(self, *_: object) -> None:
            return

        def work(self, client: object, book: journal.Ledger, until: object) -> None:
            os.close(book.events._file)
            book.events._file = os.open("/dev/full", os.O_WRONLY)
            raise ZeroDivisionError("first")

    monkeypatch.setattr(final_reader, "role_class", Breaks)
    spec = replace(
        SPECS["final_reader"]("r"), writer="r.0", ledger=str(tmp_path), board=str(tmp_path / "board")
    )
    with pytest.raises(ZeroDivisionError, match="first"):
        main.run_role(spec, lambda: False, client=object())
    with pytest.raises(LedgerError):
        journal.EventLog(Path("/dev/full"), "w").write("step")
