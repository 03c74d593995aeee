"""Which Docker engine is taken, and the one line that a user without one gets."""

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


def test_an_engine_that_the_user_names_and_that_is_dead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    with pytest.raises(SetupError, match=r"DOCKER_HOST=.*dead\.sock does not answer: No such file") as told:
        engine.engine()
    assert "\n" not in str(told.value)
    assert "unset DOCKER_HOST" in str(told.value)


def test_a_name_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(SetupError, match="DOCKER_HOST=nonsense://x does not answer"):
        engine.find_engine()


def test_somebody_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    why = engine.trouble()
    assert why == f"no Docker engine: none runs, and only root can start one; {engine.BY_HAND}"
    with pytest.raises(SetupError, match="only root can start one"):
        engine.engine()


def test_root_that_may_not_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine, "_may", lambda capability: False)
    assert "this root may not mount" in (engine.trouble() or "")


def test_root_without_dockerd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine, "_may", lambda capability: True)
    monkeypatch.setattr(engine, "_dockerd", lambda: None)
    monkeypatch.setattr(apt, "may_install", lambda: False)
    assert "dockerd is not installed" in (engine.trouble() or "")
    monkeypatch.setattr(apt, "may_install", lambda: True)
    assert engine.trouble() is None, "it can be installed: nothing to skip for"


def test_two_engines_have_a_place_each() -> None:
    one, two = engine_folders.EngineFolder.take(), engine_folders.EngineFolder.take()
    try:
        assert one.folder != two.folder
        assert one.group != two.group
        assert engine_folders.sweep_engines() == [], "places in use are left alone"
    finally:
        one.release()
        two.release()
    again = engine_folders.EngineFolder.take()
    again.release()
    assert again.folder == one.folder


def test_what_is_written_down_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, how: False)  # /run is not ours
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    place = engine_folders.EngineFolder.take()
    run = place.new_run_folder()
    place.new_bridge()  # never made
    place.release()  # as if the process had died
    assert run.is_dir()
    assert [str(run) in line for line in engine_folders.sweep_engines()] == [True]
    assert not run.exists()
    assert engine_folders.sweep_engines() == []
