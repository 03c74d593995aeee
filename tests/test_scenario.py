"""Scenarios and schedules are validated when they are created; the error names the bad value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from faults.kill import Kill
from harness.contracts import Mode, TopicSettings, Verdict
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario, Timings, TransactionSettings
from harness.schedule import Window, every, once, overlapping
from harness.targets import leader_of
from suites.scenarios import matrix


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Scenario(name="a b", mode=Mode.IDEMPOTENT), "Scenario.name"),
        (lambda: Scenario(name="a", mode=Mode.IDEMPOTENT, produce_s=0), "Scenario.produce_s"),
        (lambda: Timings(drain_limit_s=-1), "Timings.drain_limit_s"),
        (lambda: ProducerSettings(keyed=0, keyless=0), "at least one"),
        (lambda: ProducerSettings(payload_bytes=100), "payload_bytes"),
        (lambda: ProducerSettings(aborted_share=1.5), "aborted_share"),
        (lambda: ConsumerSettings(isolation="dirty"), "read_committed or read_uncommitted"),
        (lambda: TransactionSettings(end_limit_s=0), "TransactionSettings.end_limit_s"),
        (lambda: TransactionSettings(spread_s=-1), "TransactionSettings.spread_s"),
        (lambda: TopicSettings(min_insync_replicas=4), "min_insync_replicas 4"),
        # TRUST T8
        (
            lambda: TopicSettings(extra={"cleanup.policy": "compact"}),
            "compacted topics .* use cleanup.policy=delete",
        ),
        (
            lambda: TopicSettings(extra={"cleanup.policy": "delete, Compact"}),
            "cleanup.policy=delete, Compact",
        ),
    ],
)
def test_a_bad_setting_is_named(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_windows_are_checked_and_sorted() -> None:
    kill = matrix.KILL_LEADER[0]
    with pytest.raises(ValueError, match="start_s"):
        Window(kill.fault, kill.on, -1, 2)
    with pytest.raises(ValueError, match="a period of more than 2 s"):
        every(2.0, kill.fault, on=kill.on, hold_s=2.0)
    late, early = once(kill.fault, on=kill.on, after_s=5), once(kill.fault, on=kill.on, after_s=1)
    assert [w.start_s for w in overlapping(late, early)] == [1, 5]
    assert [w.start_s for w in every(10, kill.fault, on=kill.on, hold_s=2)] == [10, 20, 30]


def test_the_matrix_crosses_all_modes_and_faults() -> None:
    names = [s.name for s in matrix.FULL]
    assert len(names) == len(set(names))
    for mode in ("at_most_once", "at_least_once", "exactly_once"):
        for fault in ("kill-leader", "sever-leader", "slow_disk-leader", "none"):
            assert f"{mode}-{fault}" in names
    assert {s.name for s in matrix.QUICK} <= set(names)
    assert all(s.expected is Verdict.VIOLATED and s.control for s in matrix.HAZARDS)


# TRUST T4: at-most-once and acks=0 must lose records, whatever the time of the kill.
def test_losses_are_required_only_where_the_leader_dies_with_unread_records() -> None:
    required = {s.name: dict(s.requires) for s in matrix.FULL if s.requires}
    assert required == {
        "at_most_once-kill-leader": {"lost": 1},
        "control-acks0_loss": {"lost": 1},
        "control-acks1_failover": {"lost": 1},
        "control-retry_duplicates": {"duplicated": 1},
        "control-aborted_uncommitted": {"aborted_read": 1},
    }
    for scenario in matrix.FULL:
        unread = [w.fault.unread for w in scenario.schedule if isinstance(w.fault, Kill)]
        without_acks = scenario.mode is Mode.AT_MOST_ONCE or scenario.producers.acks == "0"
        assert any(unread) == (without_acks and "lost" in scenario.requires)
    for mode in matrix.MODES:
        assert matrix.crossed(mode, "kill-leader").fault_name == "kill-leader", "one column of the report"


def test_a_scenario_describes_itself_as_json() -> None:
    for scenario in matrix.FULL:
        described = json.loads(json.dumps(scenario.describe()))
        assert described["name"] == scenario.name
        assert len(described["schedule"]) == len(scenario.schedule)


def test_the_fault_name_is_short() -> None:
    leader, others = [leader_of(0)], [leader_of(partition) for partition in range(1, 5)]

    def named(*targets: Any) -> str:
        schedule = overlapping(*(once(Kill(), on=target) for target in targets))
        return Scenario(name="a", mode=Mode.IDEMPOTENT, schedule=schedule).fault_name

    assert named() == "none"
    assert named(*leader, *leader, *leader) == named(*leader), "a repeated fault is named once"
    assert named(*others) == "+".join(named(one) for one in others)
    assert named(*leader, *others) == "5 different faults"


def test_seeds_differ_between_scenarios_and_repeat() -> None:
    first, again = matrix.seeded(matrix.FULL, 3), matrix.seeded(matrix.FULL, 3)
    assert first == again
    assert len({s.seed for s in first}) == len(first)


# TRUST section 5: a name is a folder below runs/ and a part of topics
@pytest.mark.parametrize("name", ["", ".", "..", ".clusters", "größe", "a/b", "a b", "-x", "a\n", "x" * 151])
def test_a_name_that_is_not_a_valid_topic_or_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"Scenario\.name"):
        Scenario(name=name, mode=Mode.AT_LEAST_ONCE)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "_x", "x" * 150])
def test_a_name_that_is_a_valid_topic_is_accepted(name: str) -> None:
    assert Scenario(name=name, mode=Mode.AT_LEAST_ONCE).name == name
