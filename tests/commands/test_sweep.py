"""`sweep`: what it refuses, lists before deleting on a shared cluster, and never deletes."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import main
from harness.clusters import existing
from harness.clusters.external import created_objects
from harness.clusters.external.discovery import Finding


@dataclass
class FakeAdmin:
    """An admin client of a cluster with these topics and groups."""

    topics: list[str]
    groups: list[str] = field(default_factory=list)
    internal: tuple[str, ...] = ()
    deleted: list[str] = field(default_factory=list)

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics=dict.fromkeys(self.topics))

    def list_consumer_groups(self, request_timeout: float) -> Any:
        return _done(SimpleNamespace(valid=[SimpleNamespace(group_id=group) for group in self.groups]))

    def describe_topics(self, asked: Any, request_timeout: float) -> Any:
        return {name: _done(SimpleNamespace(is_internal=name in self.internal)) for name in asked.topic_names}

    def delete_topics(self, names: list[str], request_timeout: float) -> Any:
        return self._delete(self.topics, names)

    def delete_consumer_groups(self, names: list[str], request_timeout: float) -> Any:
        return self._delete(self.groups, names)

    def _delete(self, there: list[str], names: list[str]) -> Any:
        for name in names:
            there.remove(name)
            self.deleted.append(name)
        return {name: _done(None) for name in names}


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


@pytest.fixture
def admin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    fake = FakeAdmin(
        topics=[
            "__consumer_offsets",
            "onceproof-a",
            "onceproof-b",
            "onceproof-internal",
            "orders",
            "onceproofed",
        ],
        groups=["onceproof-a-group", "billing"],
        internal=("__consumer_offsets", "onceproof-internal"),
    )
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Finding, "reach", lambda self: None)
    monkeypatch.setattr(existing.ExistingCluster, "_connect", lambda self: fake)
    return fake


def _sweep(*words: str) -> int:
    return main(["sweep", "--bootstrap", "kafka:9092", *words])


# TRUST D4
@pytest.mark.parametrize(
    "prefix",
    ["", "o", "_", "-", "---", "a-", "ab-", "__c", "__consumer-", "_ab-", "onceproof", "o.-_-", "a b-", "*"],
)
def test_a_prefix_that_could_match_unrelated_names_is_refused(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str], prefix: str
) -> None:
    assert _sweep(f"--prefix={prefix}", "--yes") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"onceproof: --prefix {prefix}: ")
    assert error.count("\n") == 1
    assert admin.deleted == []


# TRUST D4
def test_without_a_terminal_it_lists_and_deletes_nothing(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sweep() == 2
    output = capsys.readouterr()
    assert [line.strip() for line in output.out.splitlines() if line.startswith("  ")] == [
        "onceproof-a",
        "onceproof-a-group",
        "onceproof-b",
    ]
    assert "--yes" in output.err
    assert admin.deleted == []


# TRUST D4
@pytest.mark.parametrize(
    ("answer", "agreed"), [("y", True), ("yes", True), ("", False), ("n", False), ("no", False)]
)
def test_at_a_terminal_it_asks_before_deleting(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch, answer: str, agreed: bool
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert _sweep() == 0
    assert bool(admin.deleted) is agreed


# TRUST D4
def test_internal_topics_and_unrelated_names_are_never_deleted(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sweep("--yes") == 0
    assert sorted(admin.deleted) == ["onceproof-a", "onceproof-a-group", "onceproof-b"]
    assert "deleted topic onceproof-b" in capsys.readouterr().out
    assert created_objects._internal(admin, ["__x", "y"]) == {"__x"}  # type: ignore[arg-type]


# TRUST D1
def test_topics_that_a_session_may_use_are_never_deleted(admin: FakeAdmin) -> None:
    record = created_objects.CreatedTopics("kafka:9092")
    record.add("onceproof-a")
    assert _sweep("--yes") == 0
    assert admin.deleted == ["onceproof-b"]


@pytest.mark.parametrize("what", ["nowhere", "file"])
def test_a_runs_folder_that_does_not_exist_is_named(
    admin: FakeAdmin, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    (tmp_path / "file").touch()
    assert main(["sweep", "--runs", what]) == 2
    output = capsys.readouterr()
    assert output.err.startswith(f"onceproof: --runs {what}: ")
    assert output.out == ""


def test_without_a_runs_folder_there_is_nothing_to_sweep(
    admin: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep"]) == 0
    assert capsys.readouterr().out == "nothing to sweep\n"
