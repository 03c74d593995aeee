"""Leftovers of a crashed harness are swept; those of a running harness, or of another machine or user, are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.base import abandoned_clusters
from harness.clusters.external import created_objects
from harness.commands import sweep as command
from harness.processes import child_process, identity, ownership, process_list
from harness.processes.identity import Identity, own_identity

ROOT = Path(__file__).parents[2]
CRASHED = """
import json, os, sys
from pathlib import Path
from harness.processes import ownership, child_process
from harness.clusters.base.abandoned_clusters import Registration
folder = ownership.new_cluster_folder(Path(sys.argv[1]))
(folder / "broker-1" / "data").mkdir(parents=True)
(folder / "broker-1" / "server.log").write_text("why it crashed")
Registration(folder)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    place = tmp_path / "cache"
    monkeypatch.setenv("ONCEPROOF_CACHE", str(place))
    return place


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def crashed(runs: Path) -> Path:
    """The folder of a cluster whose harness was killed."""
    subprocess.run([sys.executable, "-c", CRASHED, str(runs)], cwd=ROOT, check=False)
    (folder,) = (runs / ownership.CLUSTERS).iterdir()
    return folder


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that has nothing to do with any run."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def _change_records(cache: Path, **fields: Any) -> None:
    """Change the owner fields of all lists in the cache folder; None removes a field."""
    for file in [*cache.glob("*/*.json"), *cache.glob("*/*.jsonl")]:
        lines = [json.loads(line) | fields for line in file.read_text().splitlines()]
        lines = [{name: value for name, value in line.items() if value is not None} for line in lines]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _swept(runs: Path) -> list[str]:
    return [*ownership.sweep(runs), *map(str, abandoned_clusters.sweep_stale())]


def test_folders_of_running_harnesses_are_left_alone(runs: Path) -> None:
    folder = ownership.new_cluster_folder(runs)
    assert ownership.sweep(runs) == []
    assert (folder / ownership.OWNER).exists()
    assert ownership.new_cluster_folder(runs) != folder
    assert ownership.left_below(runs) == [], "this machine knows that it is in use"


def test_a_disowned_folder_leaves_no_record(runs: Path, own_cache: Path) -> None:
    first, second = ownership.new_cluster_folder(runs), ownership.new_cluster_folder(runs)
    assert len(list(own_cache.glob("owners/*.json"))) == 2
    ownership.disown(first)
    ownership.remove(second)
    assert not list(own_cache.glob("owners/*.json"))


def test_processes_of_a_dead_owner_are_ended_and_its_data_deleted(
    runs: Path, crashed: Path, victim: subprocess.Popen[bytes], own_cache: Path
) -> None:
    left = identity.identify(victim.pid)
    assert left is not None
    (owner,) = ownership.records(ownership.OWNERS)
    lines = [vars(owner.owner), {"pidfile": str(crashed / "broker-1" / "server.pid"), **vars(left)}]
    (own_cache / process_list.LISTS).mkdir()
    (own_cache / process_list.LISTS / "1.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    swept = ownership.sweep(runs)
    assert victim.wait(10) != 0
    assert len(swept) == 1
    assert "ended 1 process" in swept[0]
    assert not (crashed / "broker-1" / "data").exists()
    assert (crashed / "broker-1" / "server.log").exists()
    assert ownership.sweep(runs) == []
    assert not list((own_cache / process_list.LISTS).iterdir())


def test_a_killed_cluster_is_swept_wherever_it_was(crashed: Path) -> None:
    assert abandoned_clusters.sweep_stale() == [crashed]
    assert not (crashed / "broker-1" / "data").exists()
    assert abandoned_clusters.sweep_stale() == []


# TRUST D1
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"machine_id": "another"}, "another machine"),
        ({"machine_id": "another", "boot_id": "another"}, "another machine"),
        ({"pid_namespace": 4026532999}, "another container"),
        ({"pid_namespace": 4026532999, "boot_id": "another"}, "another container"),
        ({"uid": 4711}, "user 4711"),
        ({"machine_id": None, "pid_namespace": None, "uid": None}, "older version"),
    ],
)
def test_a_harness_of_another_machine_container_or_user_never_counts_as_ended(
    runs: Path, crashed: Path, own_cache: Path, capsys: pytest.CaptureFixture[str],
    fields: dict[str, Any], reason: str,
) -> None:  # fmt: skip
    record = created_objects.CreatedTopics("kafka:9092")
    record.add("onceproof-theirs")
    dead = next(ownership.records(ownership.OWNERS)).owner
    _change_records(own_cache, **{**vars(dead), **fields})
    before = sorted(own_cache.rglob("*.json"))
    assert _swept(runs) == []
    assert created_objects.crashed("kafka:9092") == {}
    assert created_objects.alive() == {"onceproof-theirs"}, "it may be in use"
    assert (crashed / "broker-1" / "data").is_dir()
    assert sorted(own_cache.rglob("*.json")) == before
    for left, thing in (
        (ownership.left_below(runs), str(crashed)),
        (abandoned_clusters.left_stale(), str(crashed)),
        (created_objects.left(), "kafka:9092"),
    ):
        (line,) = left
        assert thing in line
        assert reason in line
        assert "rm " in line
    assert command.run(_arguments(runs)) == 0
    assert capsys.readouterr().out.count("left alone") == 3


# TRUST D1
def test_a_harness_of_an_earlier_boot_of_this_machine_has_ended(
    runs: Path, crashed: Path, own_cache: Path
) -> None:
    _change_records(own_cache, boot_id="earlier", pid=os.getpid(), start_ticks=own_identity().start_ticks)
    if own_identity().pid_namespace != identity._INITIAL_NAMESPACE:
        assert ownership.sweep(runs) == [], "inside of a container it may be another host"
        return
    assert len(ownership.sweep(runs)) == 1
    assert not (crashed / "broker-1" / "data").exists()


# TRUST D1
def test_a_container_of_another_boot_may_run_on_another_host() -> None:
    here = own_identity()
    inside = replace(here, boot_id="another", pid_namespace=4026532999)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "pid_namespace", lambda: 4026532999)
        assert "another boot" in inside.foreign()
        assert not inside.ended()
        assert not replace(inside, boot_id=here.boot_id).foreign()


# TRUST D1
def test_a_shared_runs_folder_without_a_record_here_is_left_alone(
    runs: Path, crashed: Path, own_cache: Path
) -> None:
    for file in own_cache.glob("*/*.json"):
        file.unlink()  # as seen with another home
    assert _swept(runs) == []
    assert (crashed / "broker-1" / "data").is_dir()
    (line,) = ownership.left_below(runs)
    assert f"no record of it is in the cache folder of this user; if nothing uses it: rm -r {crashed}" in line


# TRUST D2
def test_a_pid_file_in_a_run_folder_ends_no_process(
    runs: Path, crashed: Path, victim: subprocess.Popen[bytes]
) -> None:
    named = identity.identify(victim.pid)
    assert named is not None
    run = runs / "unpacked" / "20260101-000000" / "logs"
    for folder in (crashed, run):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "server.pid").write_text(json.dumps(vars(named)))
    dead = replace(named, start_ticks=named.start_ticks + 1)
    (run / ownership.OWNER).write_text(json.dumps(vars(dead)))
    _swept(runs)
    child_process.sweep(runs)
    assert victim.poll() is None


# TRUST D2
@pytest.mark.parametrize("link", ["cluster", "node", "data"])
def test_no_data_is_deleted_through_a_symbolic_link(
    runs: Path, crashed: Path, tmp_path: Path, link: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    precious = elsewhere / "broker-1" / "data" / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("not ours")
    (elsewhere / abandoned_clusters._MARK).touch()
    moved, target = {
        "cluster": (crashed, elsewhere),
        "node": (crashed / "broker-1", elsewhere / "broker-1"),
        "data": (crashed / "broker-1" / "data", elsewhere / "broker-1" / "data"),
    }[link]
    moved.rename(tmp_path / "moved")
    moved.symlink_to(target)
    _swept(runs)
    assert precious.read_text() == "not ours"


# TRUST D2
def test_an_archive_unpacked_below_runs_deletes_nothing(runs: Path, tmp_path: Path) -> None:
    precious = tmp_path / "home" / "data" / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("not ours")
    folder = runs / ownership.CLUSTERS / "99-0"
    folder.mkdir(parents=True)
    (folder / "broker-1").symlink_to(tmp_path / "home")
    (folder / "onceproof-cluster").touch()
    dead = replace(own_identity(), start_ticks=1)
    (folder / ownership.OWNER).write_text(json.dumps(vars(dead)))
    assert _swept(runs) == []
    assert precious.exists()


# TRUST D2
def test_a_folder_that_replaced_the_recorded_one_keeps_its_data(
    runs: Path, crashed: Path, tmp_path: Path
) -> None:
    crashed.rename(tmp_path / "moved")
    (crashed / "broker-1" / "data").mkdir(parents=True)
    (crashed / abandoned_clusters._MARK).touch()
    assert _swept(runs) == []
    assert (crashed / "broker-1" / "data").is_dir()


def _arguments(runs: Path) -> Any:
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["--runs", str(runs)])


def test_an_identity_survives_json() -> None:
    here = own_identity()
    assert identity.from_fields(json.loads(json.dumps(vars(here)))) == here
    assert here.alive()
    assert not here.foreign()
    broken: object
    for broken in (None, 3, [], {"pid": 1}, {**vars(here), "pid": "x"}, {**vars(here), "uid": float("inf")}):
        assert identity.from_fields(broken) is None
    assert isinstance(here, Identity)
