"""`minimise`: the smallest scenario of a stored one, as a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from tests.commands.mock_brokers import NEARLY_SMALLEST, on_mock_brokers
from tests.short_run import HONEST

pytestmark = pytest.mark.spark


def test_a_lying_run_is_minimised_to_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_mock_brokers(monkeypatch)
    (tmp_path / "scenario.json").write_text(json.dumps(NEARLY_SMALLEST.describe()))
    words = ["minimise", str(tmp_path / "scenario.json"), "--runs", str(tmp_path / "runs"), "--minutes", "5"]
    assert main(words) == 0
    output = capsys.readouterr().out
    assert output.startswith("# a violation: ")
    assert "client='lying'" in output
    assert "linger_ms" not in output
    compile(output, "pasted", "exec")


def test_a_scenario_that_holds_is_not_minimised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_mock_brokers(monkeypatch)
    (tmp_path / "scenario.json").write_text(json.dumps(HONEST.describe()))
    words = ["minimise", str(tmp_path / "scenario.json"), "--runs", str(tmp_path / "runs")]
    assert main(words) == 3
    assert "did not show a violation: a violation: 0 of 3 (" in capsys.readouterr().out
