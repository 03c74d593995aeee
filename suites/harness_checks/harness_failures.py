"""Provoke failures of the harness itself during a real run; each waits for the state that it needs."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contracts import Mode
from harness.ledger.rundir import RunDir
from harness.scenario import ProducerSettings, Scenario
from harness.testing.small_disk import fill
from harness.waiting import wait_until

# Enough records that reading them all takes many polls: a reader that is killed after its first rows has not finished.
CLEAN = Scenario(
    name="clean",
    mode=Mode.AT_LEAST_ONCE,
    producers=ProducerSettings(records_per_s=4000),
    produce_s=3.0,
)
LIMIT_S = 120.0


@dataclass
class Sabotage:
    """Damage from outside during a run; `did` describes it once it is done."""

    scenario: str
    runs: Path
    act: Callable[[RunDir], str]
    did: str = ""
    _error: list[BaseException] = field(default_factory=list)

    def _wait_and_act(self) -> None:
        try:
            folder = wait_until(
                lambda: next((self.runs / self.scenario).glob("*/ledger/harness.events"), None),
                LIMIT_S,
                f"no run of {self.scenario} began",
                every_s=0.005,
            )
            self.did = self.act(RunDir(folder.parents[1]))
        except BaseException as error:  # noqa: BLE001  raised again by `during`, in the thread of the test
            self._error.append(error)


@contextmanager
def during(scenario: Scenario, runs: Path, act: Callable[[RunDir], str]) -> Iterator[Sabotage]:
    """Apply `act` during the run of this scenario that begins inside the block."""
    sabotage = Sabotage(scenario.name, runs, act)
    thread = threading.Thread(target=sabotage._wait_and_act, name="sabotage", daemon=True)
    thread.start()
    yield sabotage
    thread.join(LIMIT_S)
    if sabotage._error:
        raise sabotage._error[0]
    assert sabotage.did, "nothing was broken, so the run shows nothing"


def events_of_harness(run: RunDir) -> list[dict[str, Any]]:
    """Return the events that the harness has written so far, without an incomplete last line."""
    lines = (run.ledger / "harness.events").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def kill_worker(name: str, *, when: Callable[[RunDir], bool]) -> Callable[[RunDir], str]:
    """Send SIGKILL to one worker process (`consumer-1`) as soon as `when` is true."""

    def pid(run: RunDir) -> int | None:
        started = [e for e in events_of_harness(run) if e["event"] == "worker" and e["name"] == name]
        return int(started[-1]["pid"]) if started and when(run) else None

    def act(run: RunDir) -> str:
        victim = wait_until(lambda: pid(run), LIMIT_S, f"no moment to kill {name}", every_s=0.001)
        os.kill(victim, signal.SIGKILL)
        return f"killed {name}"

    return act


def while_producing(run: RunDir) -> bool:
    return any(e["event"] == "step" and e["step"] == "faults" for e in events_of_harness(run))


def at_once(run: RunDir) -> bool:
    """Return True at once: the worker's start takes much longer than finding its process."""
    return True


def after_first_rows(isolation: str) -> Callable[[RunDir], bool]:
    """Return a condition: the final reader has written some rows of this reading."""

    def seen(run: RunDir) -> bool:
        log = run.ledger / f"final-reader.0.{isolation}.log"
        return log.exists() and log.stat().st_size > 0

    return seen


def fill_disk(mount: Path) -> Callable[[RunDir], str]:
    """Fill this file system while producers run."""

    def act(run: RunDir) -> str:
        wait_until(lambda: while_producing(run), LIMIT_S, "it never produced")
        return f"wrote {fill(mount, 'ballast').stat().st_size} bytes of ballast"

    return act
