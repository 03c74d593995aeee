"""Carry out a schedule: pick targets, hold faults, prove that they bit, always heal.

Windows may overlap. Each is undone at its own time. Healing can only be measured when no window is open any more, so those
proofs come last, in the order in which the windows were undone.

The schedule's clock is paused while a fault begins, is undone or proves that it healed: windows that do not overlap in the
schedule never overlap in a run, however long each takes to bite.

A signal ends the schedule, never the undoing: Ctrl-C, SIGTERM and SIGHUP take effect when every fault that was begun is undone,
or when an undo has used up its limit.
"""

from __future__ import annotations

import heapq
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from harness.contracts import Arena, Bite, Cluster, Limited, Mode, Node, ReplicaLogs, Skewable, WorkerNode
from harness.errors import FaultError
from harness.guarantees import SHARE_GROUP
from harness.kafka.optional_requests import TRANSACTIONS
from harness.ledger.journal import EventLog
from harness.provision import faketime
from harness.runtime import signals
from harness.scenario import Scenario
from harness.schedule import Schedule, Window

UNDO_LIMIT_S = 300.0  # for one fault: more than all limits of its steps together


@dataclass
class _Held:
    number: int
    window: Window
    nodes: Sequence[Node]
    hold: AbstractContextManager[Bite]
    entered: bool = False

    def __str__(self) -> str:
        return f"{self.window.fault} on {', '.join(node.name for node in self.nodes)}"

    def begun(self) -> bool:
        """Return True if there is something to undo: the fault was entered and no error has already undone it.

        A signal may raise after the fault has yielded and before `entered` is set, so the state of its generator decides.
        """
        generator = getattr(self.hold, "gen", None)
        if inspect.isgenerator(generator):
            return inspect.getgeneratorstate(generator) == inspect.GEN_SUSPENDED
        return self.entered


@dataclass
class Injector:
    arena: Arena
    events: EventLog
    say: Callable[[str], None] = field(default=lambda _: None)
    watch: Callable[[], None] = field(default=lambda: None)  # raises if the run is broken
    undo_limit_s: float = UNDO_LIMIT_S
    _held: dict[int, _Held] = field(default_factory=dict)
    _undone: list[_Held] = field(default_factory=list)
    _failures: list[str] = field(default_factory=list)
    _paused_s: float = 0.0

    def inject(self, schedule: Schedule) -> None:
        """Carry out all windows. Whatever happens, every fault that was begun is undone."""
        with signals.only_first():
            try:
                try:
                    self._walk(schedule)
                finally:
                    self._undo_all()
            except Exception as error:
                if self._failures:
                    raise FaultError(self._not_undone()) from error
                raise
            finally:  # again: the one signal that can raise may have come just before the first call
                self._undo_all()
        if self._failures:
            raise FaultError(self._not_undone())

    def _walk(self, schedule: Schedule) -> None:
        began = time.monotonic()
        opens = [(window.start_s, number) for number, window in enumerate(schedule)]
        closes: list[tuple[float, int]] = []  # time, and the last window of the group that is undone then
        heapq.heapify(opens)
        while opens or closes:
            next_open = began + self._paused_s + opens[0][0] if opens else math.inf
            next_close = closes[0][0] if closes else math.inf
            self._sleep_until(min(next_open, next_close))
            with self._clock_paused():
                if next_open <= next_close:
                    _, number = heapq.heappop(opens)
                    self._open(number, schedule[number])
                    if all(member in self._held for member in _group(schedule, number)):
                        heapq.heappush(closes, (time.monotonic() + schedule[number].hold_s, number))
                else:
                    _, number = heapq.heappop(closes)
                    with signals.deferred():
                        for member in reversed(_group(schedule, number)):
                            self._close(member)
                if not self._held:
                    self._prove_healed()

    def _undo_all(self) -> None:
        """Undo all faults that are held, the last one first, even if the ledger can no longer be written."""
        with signals.deferred(), ExitStack() as every:
            for number in sorted(self._held):
                if self._held[number].begun():
                    every.callback(self._close, number)
                else:
                    del self._held[number]

    def _not_undone(self) -> str:
        return "could not be undone: " + "; ".join(self._failures)

    def _sleep_until(self, due: float) -> None:
        while (left := due - time.monotonic()) > 0:
            self.watch()
            time.sleep(min(0.1, left))

    @contextmanager
    def _clock_paused(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._paused_s += time.monotonic() - began

    def _record(self, held: _Held, step: str, **fields: object) -> None:
        self.events.write(
            "window",
            window=held.number,
            step=step,
            fault=str(held.window.fault),
            target=str(held.window.on),
            nodes=[n.name for n in held.nodes],
            **fields,
        )

    def _open(self, number: int, window: Window) -> None:
        nodes = window.on.pick(self.arena)
        if not nodes:
            raise FaultError(f"{window.on}: no node of the cluster has this role now")
        unable = [n.name for n in nodes if not isinstance(n, window.fault.needs)]
        if unable:
            raise FaultError(f"{window.fault} needs {window.fault.needs.__name__} nodes; {unable} are not")
        held = _Held(number, window, nodes, window.fault.hold(self.arena, nodes))
        self.say(str(held))
        self._record(held, "open")
        self._held[number] = held  # before it begins, so that no signal comes between the two
        bite = held.hold.__enter__()
        held.entered = True
        self._record(held, "bite", bit=bite.bit, proof=bite.proof, measured=dict(bite.measured), way=bite.way)
        self.say(bite.proof)

    def _close(self, number: int) -> None:
        """Undo one fault. An error is recorded and raised at the end, so that the other faults are undone too."""
        held = self._held[number]
        try:
            self._record(held, "heal")
        finally:
            with suppress(OSError):  # a closed terminal must not keep a fault in place
                self.say(f"undoing {held} …")
            problem = self._undo(held)
            del self._held[number]
        if problem is None:
            self._undone.append(held)
            return
        self._failures.append(f"{held.window.fault}: {problem}")
        self._record(held, "error", text=str(problem))
        with suppress(OSError):
            self.say(str(problem))

    def _undo(self, held: _Held) -> BaseException | None:
        """Undo in a separate thread, where no signal raises, and wait for it up to a limit. Return the error, if any."""
        problems: list[BaseException] = []

        def undo() -> None:
            try:
                held.hold.__exit__(None, None, None)
            except BaseException as error:  # noqa: BLE001  whatever the error, the other faults have to be undone too
                problems.append(error)

        limit_s = self.undo_limit_s + sum(getattr(node, "command_limit_s", 0.0) for node in held.nodes)
        thread = threading.Thread(target=undo, name=f"undo {held}", daemon=True)
        thread.start()
        thread.join(limit_s)
        if thread.is_alive():
            return FaultError(f"{held} is not undone after {limit_s:g} s")
        return problems[0] if problems else None

    def _prove_healed(self) -> None:
        while self._undone:
            held = self._undone.pop(0)
            healing = held.window.fault.healed(self.arena, held.nodes)
            self._record(held, "healed", healed=healing.healed, proof=healing.proof,
                       measured=dict(healing.measured))  # fmt: skip
            self.say(healing.proof)


def _group(schedule: Schedule, number: int) -> list[int]:
    """Return all windows that are undone together with this one, in order."""
    group = schedule[number].group
    return [n for n, window in enumerate(schedule) if window.group == group] if group else [number]


# Optional requests of brokers that a mode needs.
_REQUESTS: Mapping[Mode, Sequence[str]] = {
    Mode.AT_MOST_ONCE: (),
    Mode.AT_LEAST_ONCE: (),
    Mode.IDEMPOTENT: ("InitProducerId",),
    Mode.EXACTLY_ONCE: TRANSACTIONS,
}


def why_not_applicable(scenario: Scenario, cluster: Cluster) -> str | None:
    """Return why a scenario cannot be run on a cluster, with the remedy: a request that its brokers lack, or a power that
    no node has because of the kind of cluster, its options or this machine. None: it can be tried.
    """
    absent = set(cluster.describe().lacking)
    asked = {str(scenario.mode): _REQUESTS[scenario.mode]}
    asked |= {str(window.fault): getattr(window.fault, "requests", ()) for window in scenario.schedule}
    if scenario.workload == SHARE_GROUP:
        asked[SHARE_GROUP] = ("DescribeShareGroupOffsets",)
    for what, requests in asked.items():
        if missing := [name for name in requests if name in absent]:
            return f"{scenario.name}: {what} needs {missing[0]}, which the brokers do not offer"
    for window in scenario.schedule:
        if reason := _why_no_power(window, cluster):
            return f"{scenario.name}: {window.fault} on {window.on} needs {reason}"
    return None


def _why_no_power(window: Window, cluster: Cluster) -> str | None:
    needs, nodes = window.fault.needs, cluster.nodes()
    if window.worker:  # the same on every cluster
        return faketime.trouble() if needs is Skewable else None
    if getattr(window.fault, "reads_logs", False) and not isinstance(cluster, ReplicaLogs):
        return "log files of brokers, which are not readable from this machine"
    if needs in (Node, WorkerNode) or any(isinstance(node, needs) for node in nodes):
        return None
    limits = [node.lacks for node in nodes if isinstance(node, Limited)]
    reasons = dict.fromkeys(lacks[power] for lacks in limits for power in needs.__mro__ if power in lacks)
    return "; ".join([f"a power that no node of this cluster has ({needs.__name__})", *reasons])
