"""The choice of a Docker engine, and the one line that a user without one gets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.provision import apt
from harness.provision.docker import engine, engine_folders


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(engine, "USUAL_SOCKET", tmp_path / "docker.sock")
    monkeypatch.setattr(engine, "_own", None)


def test_a_dead_engine_in_docker_host_raises_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    with pytest.raises(SetupError, match=r"DOCKER_HOST=.*dead\.sock does not answer: No such file") as raised:
        engine.engine()
    assert "\n" not in str(raised.value)
    assert "unset DOCKER_HOST" in str(raised.value)


def test_an_invalid_docker_host_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(SetupError, match="DOCKER_HOST=nonsense://x does not answer"):
        engine.find_engine()


def test_without_root_no_engine_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    why = engine.trouble()
    assert why == f"no Docker engine: none runs, and only root can start one; {engine.BY_HAND}"
    with pytest.raises(SetupError, match="only root can start one"):
        engine.engine()


def test_root_without_the_permission_to_mount_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine, "_may", lambda capability: False)
    assert "this root may not mount" in (engine.trouble() or "")


def test_a_missing_dockerd_is_reported_unless_it_can_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine, "_may", lambda capability: True)
    monkeypatch.setattr(engine, "_dockerd", lambda: None)
    monkeypatch.setattr(apt, "may_install", lambda: False)
    assert "dockerd is not installed" in (engine.trouble() or "")
    monkeypatch.setattr(apt, "may_install", lambda: True)
    assert engine.trouble() is None, "it can be installed: nothing to skip for"


def test_two_engines_have_separate_folders() -> None:
    one, two = engine_folders.EngineFolder.take(), engine_folders.EngineFolder.take()
    try:
        assert one.folder != two.folder
        assert one.group != two.group
        assert engine_folders.sweep_engines() == [], "folders in use are left alone"
    finally:
        one.release()
        two.release()
    again = engine_folders.EngineFolder.take()
    again.release()
    assert again.folder == one.folder


def test_recorded_leftovers_are_removed_by_the_next_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, how: False)  # /run is not writable
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    place = engine_folders.EngineFolder.take()
    run = place.new_run_folder()
    place.new_bridge()  # never made
    place.release()  # as if the process had died
    assert run.is_dir()
    assert [str(run) in line for line in engine_folders.sweep_engines()] == [True]
    assert not run.exists()
    assert engine_folders.sweep_engines() == []
