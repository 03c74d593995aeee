"""The catalogue of faults: the list, and the document made from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import registry
from harness.cli import main
from harness.fault_catalogue import DOCUMENT, as_markdown, catalogue

# All faults that the project promises; one a file.
PROMISED = {
    "kill", "restart", "rolling_restart", "pause", "sever", "slow_link", "flaky_link", "hold_requests", "late_requests", "slow_disk",
    "full_disk", "broken_disk", "power_loss", "truncate_log", "flip_bits", "skew_clock", "starve",
    "transfer_leadership", "reassign", "add_partitions", "unclean_election", "delete_records", "short_retention",
    "kill_worker", "pause_worker", "fence_producer", "rebalance", "rolling_upgrade",
    "at_moment",
}  # fmt: skip


def test_every_promised_fault_describes_itself() -> None:
    assert set(registry.names("fault")) == PROMISED
    for entry in catalogue():
        assert entry.what.endswith((".", "!")), f"{entry.name}: its docstring is not a sentence"
        assert entry.ways
        assert all(entry.ways.values()), f"{entry.name}: a way does not say what it needs"


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == as_markdown(catalogue()) + "\n", (
        "call ./onceproof faults --markdown > docs/faults.md"
    )


def test_the_readme_has_the_number_of_faults() -> None:
    readme = DOCUMENT.parent.parent / "README.md"
    assert f"There are {len(PROMISED)} faults" in readme.read_text(encoding="utf-8")


def test_the_command_lists_all_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == PROMISED
    assert main(["faults", "--json"]) == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)} == PROMISED


def test_measured_effects_belong_to_existing_faults() -> None:
    measured = Path(__file__).parent.parent / "faults" / "measured.json"
    assert set(json.loads(measured.read_text(encoding="utf-8"))) <= PROMISED
