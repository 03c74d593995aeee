"""Commands on mock brokers: the cluster and the preparation are replaced, everything else is real."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster_options import Choice
from harness.clusters.memory import MemoryCluster
from harness.commands import _preparation
from harness.contracts import Verdict
from harness.nights.night import Night
from harness.scenario import ProducerSettings, Scenario, Timings
from tests.short_run import HONEST

# Its final reader hides a record, so `lost` is found (ONCEPROOF_LIE=lose); the record is delivered all the same.
LIAR = Scenario(**{**vars(HONEST), "name": "liar", "client": "lying"})
# As small as steps of minimising make it, except for one setting.
NEARLY_SMALLEST = Scenario(
    **{
        **vars(LIAR),
        "timings": Timings(),
        "producers": ProducerSettings(keyless=0, records_per_s=100, linger_ms=5),
    }
)
CANARY = Scenario(
    **{
        **vars(LIAR),
        "name": "canary",
        "expected": Verdict.VIOLATED,
        "requires": {"lost": 1},
        "tolerates": ("phantom", "offset_conflict"),
        "control": True,
    }
)


def on_mock_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands start mock brokers, and fetch nothing."""
    monkeypatch.setattr(_preparation, "prepare", lambda args, note: args.runs.mkdir(exist_ok=True))
    monkeypatch.setattr(Choice, "build", lambda self, folder: MemoryCluster(Path(folder)))
    monkeypatch.setenv("ONCEPROOF_LIE", "lose")


def without_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nights neither replay nor minimise what they find: a test of something else need not wait for that."""
    monkeypatch.setattr(Night, "_replay_findings", lambda self: None)
    monkeypatch.setattr(Night, "_minimise_findings", lambda self: None)
