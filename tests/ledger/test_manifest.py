"""Options of clients in the manifest: runs of earlier versions have none, and wrong values are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import ConsumerOptions, Mode, ProducerOptions
from harness.errors import LedgerError
from harness.ledger.journal import VERSION
from harness.ledger.manifest import read_manifest
from harness.ledger.rundir import RunDir
from harness.scenario import ConsumerSettings, PipelineSettings, ProducerSettings, Scenario

# As the version before options wrote it, shortened.
EARLIER = {
    "mode": "at_least_once",
    "guarantee": "at_least_once",
    "name": "control-acks0_loss",
    "producers": {"keyed": 1, "keyless": 1, "records_per_s": 3000, "extra": {"acks": "0", "retries": 0}},
    "consumers": {"members": 2, "isolation": "read_committed", "static": False, "extra": {}},
    "pipeline": {
        "members": 2,
        "output": {"partitions": 3, "extra": {}},
        "producer_extra": {"transaction.timeout.ms": 300_000},
        "consumer_extra": {},
    },
}


def stored(folder: Path, scenario: dict[str, Any]) -> RunDir:
    run = RunDir.create(folder, "x")
    manifest = {"version": VERSION, "clock": {"monotonic_ns": 1}, "scenario": scenario}
    run.manifest.write_text(json.dumps(manifest))
    return run


def test_a_manifest_of_an_earlier_version_is_read_as_it_is(tmp_path: Path) -> None:
    assert read_manifest(stored(tmp_path, EARLIER))["scenario"] == EARLIER


def test_options_that_are_set_are_in_the_manifest_and_no_others(tmp_path: Path) -> None:
    scenario = Scenario(
        name="x",
        mode=Mode.EXACTLY_ONCE,
        producers=ProducerSettings(acks=1, linger_ms=3),  # type: ignore[arg-type]  # a number is understood, too
        consumers=ConsumerSettings(assignor="range"),
        pipeline=PipelineSettings(
            producer=ProducerOptions(idempotent=True), consumer=ConsumerOptions(reset="latest")
        ),
    )
    described = read_manifest(stored(tmp_path, scenario.describe()))["scenario"]
    assert described == json.loads(json.dumps(scenario.describe()))
    assert (described["producers"]["acks"], described["producers"]["linger_ms"]) == ("1", 3)
    assert described["consumers"]["assignor"] == "range"
    assert described["pipeline"]["producer"] == {"idempotent": True, "extra": {}}
    assert described["pipeline"]["consumer"] == {"reset": "latest", "extra": {}}
    assert "retries" not in described["producers"]


@pytest.mark.parametrize(
    ("part", "option", "value"),
    [
        ("producers", "acks", "2"),
        ("producers", "acks", 1),
        ("producers", "retries", -1),
        ("producers", "retries", "3"),
        ("producers", "idempotent", "yes"),
        ("producers", "request_timeout_ms", [1]),
        ("producers", "compression", {}),
        ("consumers", "session_timeout_ms", 1.5),
        ("consumers", "assignor", "x" * 1001),
        ("consumers", "store_when_given", 1),
    ],
)
def test_a_wrong_option_is_refused(part: str, option: str, value: Any, tmp_path: Path) -> None:
    scenario = {**EARLIER, part: {option: value}}
    with pytest.raises(LedgerError, match=rf"not the manifest of a run: scenario\.{part}\.{option} is "):
        read_manifest(stored(tmp_path, scenario))
    name = part.removesuffix("s")
    with pytest.raises(LedgerError, match=rf"scenario\.pipeline\.{name}\.{option} is "):
        read_manifest(stored(tmp_path, {**EARLIER, "pipeline": {name: {option: value}}}))
