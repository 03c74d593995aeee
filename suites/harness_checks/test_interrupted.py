"""A harness that is interrupted or killed while it holds a fault: the fault is undone, at once or by the next start."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.ledger.reading import read_events
from harness.processes import child_process
from harness.runtime.cache import cache_dir
from harness.testing.leftovers import control_groups, mounts_of, processes_of
from harness.waiting import wait_until
from suites.support.standing import ROOT, Standing, standing

LIMIT_S = 300.0
# `prove` with a single scenario, whose fault is held for longer than the test lasts.
PROVE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may run in the background, where it is ignored,
signal.signal(signal.SIGHUP, signal.SIG_DFL)              # or by nohup
from harness import cli, registry
from harness.contracts import Mode
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import matrix

fault = registry.load("fault", sys.argv.pop(1))()
schedule = once(fault, on=leader_of(0), after_s=0.2, hold_s=600.0)
matrix.FULL = (Scenario(name=f"held-{fault}", mode=Mode.AT_LEAST_ONCE, schedule=schedule),)
sys.exit(cli.main(["prove", *sys.argv[1:]]))
"""
ENDINGS = [
    pytest.param((signal.SIGINT, signal.SIGINT), id="ctrl-c-twice", marks=pytest.mark.smoke),
    pytest.param((signal.SIGTERM,), id="SIGTERM", marks=pytest.mark.conformance),
    pytest.param((signal.SIGHUP,), id="SIGHUP", marks=pytest.mark.conformance),
]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("standing")) as started:
        yield started


@contextmanager
def proving(fault: str, runs: Path, *words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start a `prove` and wait until it holds the fault; kill it at the end of the block if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-c", PROVE, fault, "--runs", str(runs), *map(str, words)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            wait_until(
                lambda: "bite" in steps(runs) or process.poll() is not None, LIMIT_S, "no fault is held"
            )
            assert process.poll() is None, process.communicate()
            yield process
        finally:
            process.kill()


def steps(runs: Path) -> list[str]:
    """Return the steps of the fault's window that the ledger has."""
    ledgers = runs.glob("*/*/ledger/harness.events")
    return [str(e["step"]) for file in ledgers for e in read_events(file) if e["event"] == "window"]


def send(process: subprocess.Popen[str], numbers: Sequence[int]) -> tuple[int, str]:
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.2)
    _output, errors = process.communicate(timeout=LIMIT_S)
    return process.returncode, errors


def stopped(there: Standing) -> list[str]:
    """Return the brokers that are stopped by a signal, as the kernel reports."""
    files = (there.folder / "cluster").glob("broker-*/server.pid")
    pids = {file.parent.name: json.loads(file.read_text(encoding="ascii"))["pid"] for file in files}
    return [name for name, pid in pids.items() if child_process.is_stopped(pid)]


def records() -> set[Path]:
    return set((cache_dir() / "held").glob("*.json"))


@pytest.mark.smoke
def test_the_next_start_resumes_a_broker_whose_harness_was_killed(there: Standing, tmp_path: Path) -> None:
    before = records()  # TRUST R2
    with proving("pause", tmp_path / "runs", *there.words(), "--powers", there.powers) as process:
        (paused,) = stopped(there)
        process.send_signal(signal.SIGKILL)
    assert stopped(there) == [paused], "nothing else resumes it"
    (record,) = records() - before
    assert there.password not in record.read_text()
    swept = subprocess.run(
        [sys.executable, "-m", "harness.cli", "sweep", "--runs", str(tmp_path / "runs")],
        cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert swept.returncode == 0, swept.stderr
    lines = [
        line for line in swept.stdout.splitlines() if line.startswith(f"{paused} of {there.bootstrap}: ")
    ]
    assert len(lines) == 1, swept.stdout
    assert lines[0].endswith("; resumed, it answers")
    assert stopped(there) == []
    assert not record.exists()


@pytest.mark.parametrize("numbers", ENDINGS)
def test_a_paused_broker_is_resumed_before_the_process_ends(  # TRUST R2
    there: Standing, tmp_path: Path, numbers: Sequence[int]
) -> None:
    before, runs = records(), tmp_path / "runs"
    with proving("pause", runs, *there.words(), "--powers", there.powers) as process:
        (paused,) = stopped(there)
        code, errors = send(process, numbers)
    assert code == 130, errors
    assert errors.splitlines()[-1] == "onceproof: interrupted"
    assert f"undoing pause on {paused} …" in errors
    assert stopped(there) == []
    assert records() == before
    assert steps(runs) == ["open", "bite", "heal"]


@pytest.mark.conformance
@pytest.mark.parametrize("fault", ["sever", "slow_disk", "pause"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_an_interrupted_prove_stops_its_local_cluster(
    tmp_path: Path, fault: str, number: int
) -> None:  # TRUST R2
    runs = tmp_path / "runs"
    with proving(fault, runs, "--combined") as process:
        code, errors = send(process, (number, number))
    assert code == 130, errors
    assert steps(runs) == ["open", "bite", "heal"], "undone without an error"
    assert processes_of(tmp_path) == []
    assert mounts_of(tmp_path) == []
    assert control_groups(process.pid) == set()
    assert not list(runs.glob(".clusters/*/*/data"))


@pytest.mark.conformance
def test_an_interrupted_pytest_undoes_its_faults(there: Standing, tmp_path: Path) -> None:  # TRUST R2
    runs = tmp_path / "runs"
    words = ["-k", "at_least_once and pause and not worker", "-p", "no:cacheprovider", "--runs", str(runs)]
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "suites/test_faults.py", *words, *there.words(), "--powers", str(there.powers)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: stopped(there) or process.poll() is not None, LIMIT_S, "no broker was paused")
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert stopped(there) == []
