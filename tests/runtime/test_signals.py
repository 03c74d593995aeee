"""Signals that end a command: SIGTERM and SIGHUP act like Ctrl-C, and undoing is finished first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harness.cluster_options import running
from harness.runtime import signals
from tests.fake_arena import FakeCluster

ROOT = Path(__file__).resolve().parents[2]
# A fault that is held for a minute, by an injector without an arena; undoing it takes a second.
HOLDER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may run in the background, where it is ignored,
signal.signal(signal.SIGHUP, signal.SIG_DFL)              # or by nohup
print = __import__('functools').partial(print, flush=True)
from pathlib import Path
from harness import cli; from harness.runtime import signals
from harness.injector import Injector
from harness.ledger.journal import EventLog
from harness.schedule import Window
from tests.test_injector import Recorded, Whom

class Story(list):
    def append(self, text):
        print(text, flush=True)
        if text.endswith(" off"):
            time.sleep(1.0)
            print("undone", flush=True)

def run(_args):
    events = EventLog(Path(sys.argv[1]), "harness")
    Injector(None, events, print).inject([Window(Recorded("pause", Story()), Whom(), 0, 60)])

cli.parse = lambda parser, arguments: type("Args", (), {"run": staticmethod(run)})
sys.exit(cli.main(["hold"]))
"""


def send(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)  # the handler runs between two steps of the interpreter


def wait_for(lines: Iterable[str], text: str) -> None:
    assert any(line.strip() == text for line in lines), f"it ended without {text!r}"


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where pytest itself ignores it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", signals.ENDING)
def test_each_signal_raises_keyboard_interrupt(number: int) -> None:  # TRUST R2
    signals.install()
    with pytest.raises(KeyboardInterrupt):
        send(number)


def test_an_ignored_signal_stays_ignored() -> None:
    """`nohup ./onceproof prove` goes on when its terminal closes."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.install()
    with signals.deferred(), signals.only_first():
        send(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_deferred_signals_take_effect_once_at_the_end() -> None:
    done: list[int] = []
    signals.install()

    @signals.deferred()
    def undo() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            send(number)
            done.append(number)

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        undo()
    assert len(done) == 3, "nothing inside was interrupted"


def test_only_the_first_signal_interrupts() -> None:
    undone: list[int] = []
    signals.install()

    @signals.only_first()
    def interrupted() -> None:
        try:
            send(signal.SIGINT)
        finally:
            for number in range(10):
                send(signal.SIGINT)
                undone.append(number)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert undone == list(range(10))


def test_other_threads_change_no_handlers() -> None:
    seen: list[object] = []

    def look() -> None:
        with signals.deferred(), signals.only_first():
            signals.install()
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]


def test_stopping_a_cluster_is_not_interrupted() -> None:  # TRUST R2
    done: list[str] = []

    class Cluster(FakeCluster):
        def stop(self) -> None:
            for number in range(3):
                send(signal.SIGINT)
                done.append(f"node {number} stopped")

    def use() -> None:
        with running(Cluster([], {})):
            done.append("used")

    with pytest.raises(KeyboardInterrupt):
        use()
    assert done == ["used", "node 0 stopped", "node 1 stopped", "node 2 stopped"]


@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT,) * 2, (signal.SIGINT,) * 10,
     (signal.SIGTERM, signal.SIGHUP)],
    ids=lambda numbers: "+".join(signal.Signals(n).name for n in numbers[:2]) + f"x{len(numbers)}",
)  # fmt: skip
def test_a_held_fault_is_undone_before_the_process_ends(  # TRUST R2
    tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "harness.events")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        wait_for(holder.stdout, "pause bit")
        for number in numbers:
            holder.send_signal(number)
            time.sleep(0.1)  # so that each arrives separately, the later ones while the fault is undone
        output, errors = holder.communicate(timeout=30)
    assert output == "undoing pause on broker-1 …\npause off\nundone\n"
    assert holder.returncode == 130
    assert errors == "onceproof: interrupted\n"
