"""Brokers have Byteman only if a scenario needs it, and it listens on no port. TRUST S2"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from faults.at_moment import AtMoment
from faults.slow_disk import SlowDisk
from harness.cluster_options import Choice, by_byteman, faults_by_byteman, laid_out_for
from harness.clusters.base.options import Options
from harness.clusters.links.mesh import Member
from harness.clusters.processes.java import Jvm
from harness.contracts import Mode
from harness.pytest_plugin.sessions import needs_byteman
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import matrix


def scenario(fault: Any) -> Scenario:
    return Scenario(name="x", mode=Mode.AT_LEAST_ONCE, schedule=once(fault, on=leader_of(0), hold_s=1.0))


def test_only_faults_that_byteman_does_need_it() -> None:
    assert faults_by_byteman() == ["broken_disk", "full_disk", "slow_disk"]
    assert not by_byteman(matrix.QUICK)
    assert by_byteman(matrix.FULL)
    assert not by_byteman([scenario(SlowDisk(harm="read", rate_kb_s=64))]), (
        "the container's control group does that"
    )
    assert not by_byteman([scenario(SlowDisk())], fuse=True)
    assert by_byteman([scenario(SlowDisk(harm="read"))], fuse=True)
    assert by_byteman([scenario(AtMoment(what={"fault": "slow_disk"}))]), "also inside another fault"


def test_the_choice_of_a_cluster_follows_its_scenarios() -> None:
    assert laid_out_for(Choice(), matrix.QUICK) == Choice()
    assert laid_out_for(Choice(), matrix.FULL).options == Options(byteman=True)
    existing = Choice(cluster="existing", bootstrap="a:1")
    assert laid_out_for(existing, matrix.FULL) == existing, "its brokers cannot be changed"


def test_the_collected_tests_decide_whether_it_is_needed() -> None:
    def item(name: str, marked: bool = False, **params: object) -> Any:
        marker = object() if marked else None
        return SimpleNamespace(
            name=name, get_closest_marker=lambda _: marker, callspec=SimpleNamespace(params=params)
        )

    assert not needs_byteman([item("test_kill[kill-leader]", scenario=matrix.QUICK[0])])
    assert needs_byteman([item("test_kill"), item("test_disk[at_least_once-slow_disk-leader]")])
    assert needs_byteman([item("test_disk", scenario=scenario(SlowDisk()))])
    assert needs_byteman([item("test_disk[fault0]", fault=SlowDisk())])
    assert needs_byteman([item("test_disk", marked=True)])


def test_a_broker_starts_without_an_agent_unless_the_option_is_set(tmp_path: Path) -> None:
    jvm = Jvm(Path("java"), "17", tmp_path, "4.3.1", agent=Path("byteman.jar"), rules=Path("disk.btm"))
    broker, controller = Member("broker-1", 1, True, False), Member("controller-1", 101, False, True)

    def agents(member: Member, byteman: bool) -> list[str]:
        return [str(word) for word in jvm.command(member, tmp_path, byteman=byteman) if "agent" in str(word)]

    assert agents(broker, False) == []
    assert agents(controller, True) == []
    assert agents(broker, True) == ["-javaagent:byteman.jar=script:disk.btm"], "no listener"
    assert replace(jvm, agent=None).command(broker, tmp_path, byteman=True)
