"""Clusters that are never started, with the nodes that a start would make on a machine that can do everything."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster_options import Choice
from harness.clusters.base.options import PLAIN, Options
from harness.clusters.containers.cluster import DockerCluster
from harness.clusters.disk import mount
from harness.clusters.local import LocalCluster
from harness.clusters.powers import memory
from harness.machine import cgroup_io
from harness.provision import faketime
from harness.provision.kafka import LAST_WITH_ZOOKEEPER


def drafted(folder: Path, kind: str = "local", options: Options = PLAIN, **more: Any) -> Any:
    """Return the cluster of a kind with its nodes; `more` are further options of a choice."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "zookeeper" or more.get("zookeeper"):
        more["kafka"] = LAST_WITH_ZOOKEEPER
    cluster = Choice(cluster=kind, options=options, **more).build(folder)
    assert isinstance(cluster, LocalCluster | DockerCluster)
    # All that nodes use while they do not run: a process has no pid, a container neither.
    runs_as = SimpleNamespace(server_pid=lambda: None, kafka_version="4.3.1")
    nodes = [
        cluster._node_class(member)(
            member, "127.0.0.1", *cast(Any, (None, folder / member.name, options, runs_as))
        )
        for member in cluster._members
    ]
    cluster._nodes = cast(Any, nodes)
    return cluster


def make_able(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine seem to be able to do everything, whatever it can."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for module in (mount, memory, faketime):
        monkeypatch.setattr(module, "trouble", lambda: None)
    monkeypatch.setattr(cgroup_io, "trouble", lambda _folder: None)
    monkeypatch.setattr("harness.clusters.containers.nodes.find_engine", lambda: None)
    monkeypatch.setattr(memory, "home_of", lambda *_: object())
