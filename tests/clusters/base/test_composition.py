"""The powers of nodes: exactly those that the kind of cluster, its options and this machine give, with reasons for the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.base.options import PLAIN, Options
from harness.clusters.disk import mount
from harness.clusters.powers import memory
from harness.contracts import (
    POWERS,
    DiskBreakable,
    DiskThrottleable,
    FolderBreakable,
    Killable,
    MemoryStarvable,
    Node,
    Pausable,
    PeerSeverable,
    PowerLosable,
    ReadSlowable,
    RequestHolding,
    Severable,
    Shapeable,
    Skewable,
    Starvable,
    Stoppable,
    Upgradable,
)
from harness.machine import cgroup_io
from harness.provision import faketime
from tests.clusters.drafted import drafted, make_able

ALWAYS = {Killable, Stoppable, Pausable, Severable, Shapeable, Starvable}
PROCESSES = ALWAYS | {PeerSeverable}
KAFKA_PROCESSES = PROCESSES | {Upgradable}


@pytest.fixture(autouse=True)
def _able_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    make_able(monkeypatch)


def powers(node: Node) -> set[type]:
    return {power for power in POWERS if isinstance(node, power)}


def test_every_power_is_listed_once() -> None:
    from harness.contracts import powers as module

    protocols = {kind for kind in vars(module).values() if getattr(kind, "_is_protocol", False)}
    combined = {"Limited", "PausableAndKillable", "WorkerNode"}
    assert {kind.__name__ for kind in protocols if kind.__module__ == module.__name__} - combined == {
        kind.__name__ for kind in POWERS
    }
    assert len(set(POWERS)) == len(POWERS)


@pytest.mark.parametrize("kind", ["local", "zookeeper"])
@pytest.mark.parametrize(
    ("options", "added"),
    [
        (PLAIN, set()),
        (Options(clocks=True), {Skewable}),
        (Options(memory=True), {MemoryStarvable}),
        (Options(byteman=True), {DiskBreakable, ReadSlowable}),
        (Options(byteman=True, fuse=True), {DiskBreakable, ReadSlowable, PowerLosable}),
        (Options(fuse=True), {DiskBreakable, PowerLosable}),
        (Options(byteman=True, log_folders=2), {DiskBreakable, ReadSlowable, FolderBreakable}),
        (Options(log_folders=2), set()),
    ],
    ids=str,
)
def test_a_local_node_has_the_powers_of_its_options(
    tmp_path: Path, kind: str, options: Options, added: set[type]
) -> None:
    nodes = drafted(tmp_path, kind, options).nodes()
    assert powers(nodes[0]) == KAFKA_PROCESSES | {RequestHolding} | added
    of_brokers = {DiskBreakable, ReadSlowable, PowerLosable, FolderBreakable}
    other = PROCESSES if kind == "zookeeper" else KAFKA_PROCESSES
    assert powers(nodes[-1]) == other | added - of_brokers, "a ZooKeeper server or a controller"


@pytest.mark.parametrize("zookeeper", [False, True])
@pytest.mark.parametrize(
    ("options", "added"),
    [
        (PLAIN, {DiskThrottleable}),
        (Options(byteman=True), {DiskThrottleable, DiskBreakable, ReadSlowable}),
        (Options(fuse=True), {DiskBreakable, PowerLosable}),
    ],
    ids=str,
)
def test_a_container_has_the_powers_of_its_options(
    tmp_path: Path, zookeeper: bool, options: Options, added: set[type]
) -> None:
    nodes = drafted(tmp_path, "docker", options, zookeeper=zookeeper).nodes()
    always = ALWAYS | {PeerSeverable, MemoryStarvable}
    assert powers(nodes[0]) == always | {RequestHolding} | added
    assert powers(nodes[-1]) == always


@pytest.mark.parametrize("kind", ["local", "zookeeper", "docker"])
def test_a_node_says_why_it_lacks_each_other_power(tmp_path: Path, kind: str) -> None:
    node = drafted(tmp_path, kind).nodes()[0]
    assert set(node.lacks) == set(POWERS) - powers(node)
    assert all(node.lacks.values())


def test_an_encrypted_lane_has_no_power_over_requests(tmp_path: Path) -> None:
    for security, held in (
        ("plaintext", True),
        ("sasl_plaintext", True),
        ("ssl", False),
        ("sasl_ssl", False),
    ):
        node = drafted(tmp_path, security=security).nodes()[0]
        assert isinstance(node, RequestHolding) is held
        assert (RequestHolding in node.lacks) is not held


@pytest.mark.parametrize(
    ("power", "kind", "broken", "reason"),
    [
        (PowerLosable, "local", mount, "no libfuse3"),
        (MemoryStarvable, "local", memory, "no control group"),
        (Skewable, "local", faketime, "no libfaketime"),
        (PowerLosable, "docker", mount, "no libfuse3"),
        (DiskThrottleable, "docker", cgroup_io, "on no disk"),
    ],
)
def test_the_reason_of_the_machine_comes_before_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, power: type, kind: str, broken: Any, reason: str
) -> None:
    monkeypatch.setattr(broken, "trouble", lambda *_: reason)
    node = drafted(tmp_path, kind).nodes()[0]
    assert not isinstance(node, power)
    assert node.lacks[power] == reason


def test_an_option_that_asks_for_memory_groups_does_not_make_them_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "trouble", lambda: "no control group")
    assert not isinstance(drafted(tmp_path, options=Options(memory=True)).nodes()[0], MemoryStarvable)


def test_only_root_has_power_over_links_and_memory_of_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    node = drafted(tmp_path, "docker").nodes()[0]
    assert powers(node) & {PeerSeverable, MemoryStarvable, Severable} == {Severable}, "lanes can be cut"
    assert "only root" in node.lacks[PeerSeverable]
    assert "only root" in node.lacks[MemoryStarvable]


def test_a_plain_broker_starts_its_program_and_nothing_else(tmp_path: Path) -> None:
    node = drafted(tmp_path).nodes()[0]
    assert node.wrapped(["java"]) == ["java"]
    assert node.residue() == []
    assert not list(tmp_path.rglob("clock"))
