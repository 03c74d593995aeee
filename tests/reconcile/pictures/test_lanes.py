"""Lanes of leaders and members, and the lag of the group, from literal rows."""

from __future__ import annotations

from typing import Any

from harness.contracts import Outcome
from harness.reconcile.pictures import leaders, members
from harness.reconcile.pictures.lag import lag
from harness.reconcile.pictures.leaders import leader_at, leader_lanes
from harness.reconcile.pictures.members import member_lanes

S = 1_000_000_000
REPLICAS = ["b1", "b2"]


def led(t_s: float, partition: int, leader: str | None, *in_sync: str, topic: int = 0) -> dict[str, Any]:
    return {"event": "leader", "t": int(t_s * S), "topic": topic, "partition": partition, "leader": leader,
            "in_sync": list(in_sync), "replicas": REPLICAS}  # fmt: skip


def test_a_lane_has_the_states_of_its_partition_in_order_of_time() -> None:
    events = [
        led(5, 0, "b2", "b2"),
        led(1, 0, "b1", *REPLICAS),
        led(1, 1, "b2", *REPLICAS),
        {"event": "step"},
    ]
    lanes, more = leader_lanes(events, S)
    assert lanes[0] == {
        "topic": 0, "partition": 0, "replicas": REPLICAS,
        "states": [[0.0, "b1", REPLICAS], [4.0, "b2", ["b2"]]],
    }  # fmt: skip
    assert [lane["partition"] for lane in lanes] == [0, 1]
    assert more == 0


def test_of_many_partitions_those_that_changed_are_kept() -> None:
    quiet = [led(1, p, "b1", *REPLICAS) for p in range(leaders.MOST_LANES + 5)]
    lanes, more = leader_lanes([*quiet, led(2, leaders.MOST_LANES + 4, "b2", "b2")], 0)
    assert (len(lanes), more) == (leaders.MOST_LANES, 5)
    assert lanes[-1]["partition"] == leaders.MOST_LANES + 4


def test_states_are_bounded() -> None:
    lanes, _ = leader_lanes([led(n / 10, 0, "b1", "b1") for n in range(leaders.MOST_STATES + 10)], 0)
    assert len(lanes[0]["states"]) == leaders.MOST_STATES


def test_the_leader_at_a_time_is_the_last_one_that_was_seen() -> None:
    lanes, _ = leader_lanes([led(1, 0, "b1", "b1"), led(2, 0, None), led(4, 0, "b2", "b2")], 0)
    assert [leader_at(lanes, 0, 0, t) for t in (0.5, 1.5, 3.0, 4.5)] == [None, "b1", "b1", "b2"]
    assert leader_at(lanes, 0, 1, 3.0) is None
    assert leader_at(lanes, 0, 0, None) is None


def assigned(t_s: float, reader: int, how: str, *partitions: int, topic: int = 0) -> dict[str, Any]:
    return {"t": int(t_s * S), "reader": reader, "how": how, "topic": topic, "partitions": list(partitions)}


def life(t_s: float, name: str, incarnation: int, state: str) -> dict[str, Any]:
    return {
        "event": "worker",
        "t": int(t_s * S),
        "name": name,
        "writes_as": f"{name}.{incarnation}",
        "state": state,
    }


def test_a_member_has_what_it_was_given_and_did_not_give_back() -> None:
    rows = [
        assigned(1, 0, "assigned", 0, 1), assigned(2, 0, "rewound", 0), assigned(3, 0, "revoked", 1),
        assigned(3, 1, "assigned_late", 1), assigned(4, 0, "lost", 0), assigned(5, 1, "assigned", 2, topic=1),
    ]  # fmt: skip
    assert member_lanes(rows, ["c1.0", "c2.0"], (), [], 0) == [
        {"member": "c1.0", "states": [[1.0, ["0", "1"]], [3.0, ["0"]], [4.0, []]]},
        {"member": "c2.0", "states": [[3.0, ["1"]], [5.0, ["1", "1/2"]]]},
    ]


def test_a_killed_member_has_nothing_and_its_next_life_is_in_the_same_lane() -> None:
    lives = [life(0, "c1", 0, "started"), life(2, "c1", 0, "killed"), life(3, "c1", 1, "started")]
    rows = [assigned(1, 0, "assigned", 0), assigned(4, 1, "assigned", 0)]
    assert member_lanes(rows, ["c1.0", "c1.1"], (), lives, 0) == [
        {"member": "c1", "states": [[1.0, ["0"]], [2.0, []], [4.0, ["0"]]]}
    ]


def test_observers_are_no_members_and_states_are_bounded() -> None:
    rows = [assigned(1, 0, "assigned", 0)]
    assert member_lanes(rows, ["observer.0"], {"observer.0"}, [], 0) == []
    changes = [assigned(n, 0, ("assigned", "revoked")[n % 2], 0) for n in range(members.MOST_STATES + 9)]
    assert len(member_lanes(changes, ["c1.0"], (), [], 0)[0]["states"]) == members.MOST_STATES


def acked(t_s: float, offset: int | None, partition: int = 0) -> dict[str, Any]:
    return {"t_outcome": int(t_s * S), "offset": offset, "topic": 0, "told_partition": partition}


def committed(t_s: float, offset: int, outcome: Outcome = Outcome.ACKED) -> dict[str, Any]:
    return {"t": int(t_s * S), "topic": 0, "partition": 0, "offset": offset, "outcome": outcome}


def test_lag_is_what_was_acked_and_not_committed() -> None:
    found = lag(
        [acked(1.0, 9), acked(1.2, 4), acked(2.0, 19)],
        [committed(1.1, 3), committed(1.5, 10), committed(1.6, 99, Outcome.UNKNOWN), committed(2.1, 25)],
        S,
    )
    assert found is not None
    assert (found["start_s"], found["step_s"]) == (0.0, 0.1)
    behind = found["partitions"][0]["behind"]
    assert behind[0] == 10, "nothing is committed yet"
    assert behind[2] == 7, "an ack of an older record moves no end back"
    assert behind[6] == 0
    assert max(behind[10:11]) == 10, "a commit that may have failed does not count"
    assert behind[-1] == 0, "a commit beyond the sampled end is no negative lag"


def test_without_acks_or_commits_there_is_no_lag() -> None:
    assert lag([acked(1, 9)], [], 0) is None
    assert lag([acked(1, None)], [committed(1, 3)], 0) is None


def test_lag_of_a_long_run_is_bounded() -> None:
    found = lag([acked(0, 9), acked(1e5, 19)], [committed(1, 3)], 0)
    assert found is not None
    assert len(found["partitions"][0]["behind"]) <= 242
