"""The files of suites/hunts/: each is complete, and its scenarios promise what its anomalies would break."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.contracts import Verdict
from harness.guarantees import Conditions, Rule, promise
from harness.hunts import listing
from harness.hunts.hunt import STUCK, Hunt
from harness.schedule import replayed

ROOT = Path(__file__).resolve().parents[2]
FOUND = listing.found()
SEEDS = range(8)
EACH = pytest.mark.parametrize(("name", "hunt"), FOUND.items(), ids=FOUND)


def test_there_are_hunts() -> None:
    assert {"wiped_leader", "wiped_follower", "timeout_duplicates"} <= set(FOUND)


@EACH
def test_the_texts_of_a_hunt_are_complete(name: str, hunt: Hunt) -> None:
    assert hunt.title.endswith("?"), "the title is the question"
    assert hunt.suspicion.endswith(".")
    assert hunt.not_tried.endswith(".")
    assert hunt.sources
    assert hunt.runs >= 1
    assert not hunt.page or (ROOT / hunt.page).is_file()


@EACH
def test_the_anomalies_of_a_hunt_are_forbidden_in_its_scenarios(name: str, hunt: Hunt) -> None:
    for seed in SEEDS:
        scenario = hunt.scenario(seed)
        assert scenario.name == f"hunt-{name}"
        assert scenario.expected is Verdict.HELD
        assert bool(hunt.stuck) == (STUCK in hunt.shows)
        for anomaly in set(hunt.shows) - {STUCK}:
            rule = promise(anomaly, scenario.guarantee, Conditions(forbids=frozenset(scenario.forbids))).rule
            assert rule is Rule.FORBIDDEN, (anomaly, seed)


@EACH
def test_the_schedule_of_a_seed_can_be_rebuilt_from_its_manifest(name: str, hunt: Hunt) -> None:
    for seed in SEEDS:
        scenario = hunt.scenario(seed)
        assert replayed([window.describe() for window in scenario.schedule]) == scenario.schedule
        assert hunt.scenario(seed) == scenario, "a function of the seed alone"
