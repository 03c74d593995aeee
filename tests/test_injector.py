"""The injector: windows at their time, bites recorded, everything undone whatever happens."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from harness.contracts import Arena, Bite, Healing, Killable, Node
from harness.errors import FaultError, OnceproofError
from harness.injector import Injector
from harness.ledger.journal import EventLog
from harness.ledger.reading import read_events
from harness.schedule import Window, once, sequence, together


@dataclass
class Thing:
    name: str = "broker-1"

    def kill(self) -> None: ...
    def restart(self) -> None: ...
    def running(self) -> bool:
        return True


@dataclass(frozen=True)
class Whom:
    nodes: tuple[Any, ...] = (Thing(),)

    def pick(self, arena: Arena) -> Sequence[Node]:
        return cast(Sequence[Node], self.nodes)

    def describe(self) -> Mapping[str, Any]:
        return {}

    def __str__(self) -> str:
        return "whom"


@dataclass(frozen=True)
class Recorded:
    """A fault that records what happens to it."""

    name: str
    story: list[str] = field(default_factory=list)
    bit: bool = True
    takes_s: float = 0.0  # to bite
    undo_fails: bool = False
    undo_takes_s: float = 0.0
    needs: ClassVar[type] = Killable
    ways: ClassVar[Mapping[str, str]] = {}
    bites_when: ClassVar[str] = ""

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        self.story.append(f"{self.name} on")
        time.sleep(self.takes_s)
        try:
            yield Bite(self.bit, f"{self.name} bit", {"ms": 1.0})
        finally:
            time.sleep(self.undo_takes_s)
            self.story.append(f"{self.name} off")
            if self.undo_fails:
                raise FaultError(f"{self.name} cannot be undone")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        self.story.append(f"{self.name} healed")
        return Healing(True, f"{self.name} is gone")

    def describe(self) -> Mapping[str, Any]:
        return {"fault": self.name}

    def __str__(self) -> str:
        return self.name


def inject(folder: Path, *windows: Window, watch: Any = lambda: None) -> list[dict[str, Any]]:
    events = EventLog(folder / "harness.events", "harness")
    try:
        Injector(cast(Arena, None), events, watch=watch).inject(windows)
    finally:
        events.close()
    return list(read_events(folder / "harness.events"))


def test_a_window_is_recorded_from_open_to_healed(tmp_path: Path) -> None:
    events = inject(tmp_path, Window(Recorded("kill"), Whom(), 0, 0.01))
    assert [e["step"] for e in events] == ["open", "bite", "heal", "healed"]
    assert events[1]["bit"] is True
    assert events[1]["proof"] == "kill bit"
    assert events[1]["measured"] == {"ms": 1.0}
    assert events[1]["nodes"] == ["broker-1"]
    assert events[3]["healed"] is True
    assert events[0]["t"] < events[3]["t"]


def test_overlapping_windows_prove_their_healing_when_none_is_open(tmp_path: Path) -> None:
    story: list[str] = []
    first, second = Recorded("sever", story), Recorded("kill", story)
    inject(tmp_path, Window(first, Whom(), 0, 0.1), Window(second, Whom(), 0.05, 0.15))
    assert story == ["sever on", "kill on", "sever off", "kill off", "sever healed", "kill healed"]


def test_windows_in_sequence_never_overlap_however_long_they_take_to_bite(tmp_path: Path) -> None:
    story: list[str] = []
    slow, next_one = Recorded("sever", story, takes_s=0.3), Recorded("kill", story)
    events = inject(tmp_path, *sequence(once(slow, on=Whom(), after_s=0, hold_s=0.05),
                                        once(next_one, on=Whom(), after_s=0, hold_s=0.05), pause_s=0.1))  # fmt: skip
    assert story == ["sever on", "sever off", "sever healed", "kill on", "kill off", "kill healed"]
    healed, opened = (
        next(e["t"] for e in events if (e["step"], e["fault"]) == wanted)
        for wanted in (("healed", "sever"), ("open", "kill"))
    )
    assert opened - healed >= 0.09e9, "the pause between them is kept"


def test_everything_is_undone_in_reverse_order_when_the_run_breaks(tmp_path: Path) -> None:
    story: list[str] = []
    first, second = Recorded("sever", story), Recorded("kill", story)

    def watch() -> None:
        if len(story) == 2:
            raise OnceproofError("a worker failed")

    with pytest.raises(OnceproofError, match="a worker failed"):
        inject(tmp_path, Window(first, Whom(), 0, 9), Window(second, Whom(), 0, 9), watch=watch)
    assert story == ["sever on", "kill on", "kill off", "sever off"]


def test_a_failing_undo_is_reported_and_the_others_still_happen(tmp_path: Path) -> None:
    story: list[str] = []
    first, second = Recorded("sever", story), Recorded("kill", story, undo_fails=True)

    def watch() -> None:
        if len(story) == 2:
            raise OnceproofError("a worker failed")

    with pytest.raises(FaultError, match="kill cannot be undone"):
        inject(tmp_path, Window(first, Whom(), 0, 9), Window(second, Whom(), 0, 9), watch=watch)
    assert story == ["sever on", "kill on", "kill off", "sever off"]


def test_faults_that_are_held_together_are_undone_in_reverse_order(tmp_path: Path) -> None:
    story: list[str] = []
    three = [(Recorded(name, story), Whom()) for name in ("sever", "kill", "pause")]
    inject(tmp_path, *together(*three, after_s=0, hold_s=0.05))
    assert story == [
        "sever on", "kill on", "pause on", "pause off", "kill off", "sever off",
        "pause healed", "kill healed", "sever healed",
    ]  # fmt: skip


def test_a_failing_undo_of_a_group_is_reported_and_the_others_still_happen(
    tmp_path: Path,
) -> None:
    story: list[str] = []
    broken = Recorded("kill", story, undo_fails=True)
    three = [(Recorded("sever", story), Whom()), (broken, Whom()), (Recorded("pause", story), Whom())]
    with pytest.raises(FaultError, match="could not be undone: kill: kill cannot be undone"):
        inject(tmp_path, *together(*three, after_s=0, hold_s=0.05))
    assert story[3:6] == ["pause off", "kill off", "sever off"]
    assert story[6:] == ["pause healed", "sever healed"], (
        "healing is not measured for a fault that could not be undone"
    )
    errors = [event for event in read_events(tmp_path / "harness.events") if event["step"] == "error"]
    assert [event["text"] for event in errors] == ["kill cannot be undone"]


def test_an_interruption_is_not_hidden_by_a_failing_undo(tmp_path: Path) -> None:  # TRUST R2
    story: list[str] = []
    first, second = Recorded("sever", story), Recorded("kill", story, undo_fails=True)

    def watch() -> None:
        if len(story) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inject(tmp_path, Window(first, Whom(), 0, 9), Window(second, Whom(), 0, 9), watch=watch)
    assert story == ["sever on", "kill on", "kill off", "sever off"]
    errors = [event["text"] for event in read_events(tmp_path / "harness.events") if event["step"] == "error"]
    assert errors == ["kill cannot be undone"]


def test_an_undo_that_hangs_is_left_after_its_limit_and_the_others_still_happen(tmp_path: Path) -> None:
    story: list[str] = []  # TRUST R2
    hanging = Recorded("kill", story, undo_takes_s=5.0)
    events = EventLog(tmp_path / "harness.events", "harness")
    injector = Injector(cast(Arena, None), events, undo_limit_s=0.2)
    schedule = together((Recorded("sever", story), Whom()), (hanging, Whom()), after_s=0, hold_s=0.05)
    begun = time.monotonic()
    with pytest.raises(FaultError, match=r"kill on broker-1 is not undone after 0\.2 s"):
        injector.inject(schedule)
    assert time.monotonic() - begun < 4.0
    assert "sever off" in story


def test_a_ledger_that_cannot_be_written_keeps_no_fault_in_place(tmp_path: Path) -> None:  # TRUST R2
    story: list[str] = []

    class FullDisk(EventLog):
        def write(self, kind: str, **fields: Any) -> None:
            if fields["step"] == "heal":
                raise OSError(28, "No space left on device")
            super().write(kind, **fields)

    injector = Injector(cast(Arena, None), FullDisk(tmp_path / "harness.events", "harness"))
    both = together(
        (Recorded("sever", story), Whom()), (Recorded("kill", story), Whom()), after_s=0, hold_s=0.05
    )
    with pytest.raises(OSError, match="No space left"):
        injector.inject(both)
    assert story == ["sever on", "kill on", "kill off", "sever off"]


@pytest.fixture
def heard() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, even if these tests run as a background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_a_signal_before_the_fault_begins_starts_nothing(tmp_path: Path) -> None:  # TRUST R2
    story: list[str] = []

    class Interrupting(EventLog):
        def write(self, kind: str, **fields: Any) -> None:
            super().write(kind, **fields)
            signal.raise_signal(signal.SIGINT)

    injector = Injector(cast(Arena, None), Interrupting(tmp_path / "harness.events", "harness"))
    with pytest.raises(KeyboardInterrupt):
        injector.inject((Window(Recorded("kill", story), Whom(), 0, 0.05),))
    assert story == []


@pytest.mark.usefixtures("heard")
def test_a_signal_between_the_bite_and_its_entry_in_the_ledger_undoes_the_fault(tmp_path: Path) -> None:
    story: list[str] = []  # TRUST R2

    class Interrupting(EventLog):
        def write(self, kind: str, **fields: Any) -> None:
            if fields["step"] == "bite":
                signal.raise_signal(signal.SIGINT)
            super().write(kind, **fields)

    injector = Injector(cast(Arena, None), Interrupting(tmp_path / "harness.events", "harness"))
    with pytest.raises(KeyboardInterrupt):
        injector.inject((Window(Recorded("kill", story), Whom(), 0, 0.05),))
    assert story == ["kill on", "kill off"]


@pytest.mark.parametrize(
    ("whom", "says"),
    [(Whom(()), "no node of the cluster has this role"), (Whom((object(),)), "needs Killable")],
)
def test_a_target_without_the_needed_power_is_named(tmp_path: Path, whom: Whom, says: str) -> None:
    if whom.nodes:
        whom = Whom((_Unable(),))
    with pytest.raises(FaultError, match=says):
        inject(tmp_path, Window(Recorded("kill"), whom, 0, 0.01))


class _Unable:
    name = "broker-9"
