"""Requests held from one moment of a worker to another: the fault on brokers and workers in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from faults.hold_requests import HoldRequests
from faults.late_requests import LateRequests
from harness.contracts import Counters, HeldRequests, Lane, Node
from harness.errors import FaultError
from harness.schedule import fault_of
from tests.fake_arena import FakeArena, make_arena
from tests.faults.test_requests import Gate


@dataclass
class Ending:
    """A worker that reaches each requested moment except those in `avoids`, and records the calls it gets."""

    name: str
    events: list[str]
    role: str = "producer"
    transactional_id: str = "orders-producer-1"
    stays_in_group: bool = False
    client_settings: dict[str, str] = field(default_factory=dict)
    avoids: str = ""
    moment: str = ""
    records: int = 0

    def stop_at(self, moment: str) -> None:
        self.moment = "" if moment == self.avoids else moment
        self.events.append(f"stop at {moment}")

    def waits(self) -> bool:
        return bool(self.moment)

    def go_on(self) -> None:
        if self.moment:
            self.events.append(f"go on from {self.moment}")
        self.moment = ""

    def worked_on(self) -> Mapping[int, int]:
        return {}

    def counters(self) -> Counters:
        self.records += 1
        return Counters(acked=self.records)

    def kill(self) -> None: ...
    def restart(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def running(self) -> bool:
        return True

    def paused(self) -> bool:
        return False


class RecordingGate(Gate):
    events: list[str]

    def hold_requests(self, how: HeldRequests) -> None:
        self.events.append("hold")
        super().hold_requests(how)

    def release_requests(self) -> None:
        self.events.append("release")
        super().release_requests()


@dataclass
class EndingArena(FakeArena):
    endings: list[Ending] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        return [*self.cluster.nodes(), *self.endings]


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def arena(events: list[str]) -> EndingArena:
    made = EndingArena(make_arena().cluster, endings=[Ending("producer-1", events)])
    gates = [RecordingGate(broker.name, broker.peers) for broker in made.cluster.brokers]
    for gate in gates:
        gate.events = events
    made.cluster.brokers = list(gates)
    return made


def test_the_worker_waits_until_it_is_held_and_until_it_is_delivered(
    arena: EndingArena, events: list[str]
) -> None:
    fault, nodes = LateRequests(), arena.cluster.brokers[:1]
    with fault.hold(arena, nodes) as bite:
        assert bite.bit
        assert bite.proof.startswith(
            "requests held from EndTxn on: 3 to broker-1 on 1 connection(s), sent after before_commit; "
            "producer-1 waited at midway_to_abort"
        )
        assert events == [
            "stop at before_commit",
            "hold",
            "go on from before_commit",
            "stop at midway_to_abort",
        ]
    assert events[4:] == ["release", "go on from midway_to_abort"], "it goes on behind the late request"
    assert fault.healed(arena, nodes).healed


def test_without_a_second_moment_the_schedule_decides_when_requests_are_delivered(
    arena: EndingArena, events: list[str]
) -> None:
    with LateRequests(until="").hold(arena, arena.cluster.brokers[:1]) as bite:
        assert bite.bit
        assert events == ["stop at before_commit", "hold", "go on from before_commit"]
    assert events[3:] == ["release"]


@pytest.mark.parametrize(
    ("avoids", "happened"),
    [
        ("before_commit", ["stop at before_commit"]),
        (
            "midway_to_abort",
            [
                "stop at before_commit",
                "hold",
                "go on from before_commit",
                "stop at midway_to_abort",
                "release",
            ],
        ),
    ],
)
def test_a_moment_that_is_not_reached_does_not_bite(
    arena: EndingArena,
    events: list[str],
    avoids: str,
    happened: list[str],
) -> None:
    arena.patience = 0.05 / 30
    arena.endings[0].avoids = avoids
    with LateRequests().hold(arena, arena.cluster.brokers[:1]) as bite:
        assert (bite.bit, bite.proof) == (False, f"producer-1 did not reach {avoids} in 0.05 s")
    assert events == happened


def test_without_a_request_it_does_not_bite_and_the_worker_resumes(
    arena: EndingArena, events: list[str]
) -> None:
    gate = arena.cluster.brokers[0]
    assert isinstance(gate, RecordingGate)
    gate.load = 0
    with LateRequests(within_s=0.05).hold(arena, [gate]) as bite:
        assert (bite.bit, bite.way) == (False, "hook")
    assert events == ["stop at before_commit", "hold", "go on from before_commit", "release"]


def test_is_a_value_with_a_name_and_can_be_made_again(arena: EndingArena) -> None:
    fault = LateRequests(("EndTxn",), Lane.CONSUME, worker="copier-1", since="before_abort", until="")
    assert fault_of(json.loads(json.dumps(fault.describe()))) == fault
    assert str(fault) == "late_requests-EndTxn"
    assert fault != HoldRequests(("EndTxn",), Lane.CONSUME)
    with pytest.raises(ValueError, match="never"):
        LateRequests(until="never")
    with pytest.raises(FaultError, match="no worker copier-1"), fault.hold(arena, arena.cluster.brokers[:1]):
        pass
