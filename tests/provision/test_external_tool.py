"""Tools of the set-up: a failure is one line with its log, and a tool that hangs is ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.provision import external_tool
from harness.runtime import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))


def executable(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_failing_tool_is_reported_with_its_last_line_and_its_log(tmp_path: Path) -> None:
    fetch = executable(tmp_path / "fetch", "echo beginning; echo 'no route to host' >&2; echo; exit 3")
    with pytest.raises(SetupError, match=r"^fetch: no route to host \(log: .*thing\.log\)$"):
        external_tool.run([fetch], log="thing")
    assert "beginning" in cache.log_file("thing").read_text()


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="took longer than 0 s"):
        external_tool.run([executable(tmp_path / "hang", "exec sleep 60")], log="thing", timeout_s=0.2)


def test_a_caller_can_distinguish_a_tool_that_fails_from_one_that_hangs(tmp_path: Path) -> None:
    fails, hangs = executable(tmp_path / "fail", "exit 3"), executable(tmp_path / "hang", "exec sleep 60")
    assert external_tool.output([fails], must_end=True) is None
    assert external_tool.output([hangs], timeout_s=0.2) is None
    with pytest.raises(external_tool.ToolTimeout, match="hang took longer than 0 s"):
        external_tool.output([hangs], timeout_s=0.2, must_end=True)
