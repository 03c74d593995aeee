"""Runs of a pytest session go to the trends: one session, also with several campaigns or workers of xdist."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness import campaign
from harness.pytest_plugin import sessions, settings
from harness.trends.recorder import SessionRecorder


def recorders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *configs: Any) -> list[SessionRecorder]:
    """Start a campaign with each configuration and return the recorders that the campaigns were given."""
    given: list[SessionRecorder] = []

    class Campaign:
        def __init__(self, *_: Any, trends: SessionRecorder, **__: Any) -> None:
            given.append(trends)

        def __enter__(self) -> Campaign:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(campaign, "Campaign", Campaign)
    monkeypatch.setattr(settings, "value", lambda config, name: str(tmp_path))
    for config in configs:
        with sessions.started_campaign(config, cast(Any, None), lambda scenario: ""):
            pass
    return given


def config_of(**worker: str) -> Any:
    return SimpleNamespace(stash=pytest.Stash(), **({"workerinput": worker} if worker else {}))


def test_all_campaigns_of_a_session_have_one_recorder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = config_of()
    first, second, other = recorders(monkeypatch, tmp_path, config, config, config_of())
    assert first is second
    assert first.kind == other.kind == "pytest"
    assert first.session != other.session


def test_workers_of_xdist_are_one_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one, two = recorders(
        monkeypatch, tmp_path, config_of(testrunuid="a1"), config_of(testrunuid="a1", workerid="gw1")
    )
    assert one is not two
    assert one.session == two.session == "pytest-a1"
