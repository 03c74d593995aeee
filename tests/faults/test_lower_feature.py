"""lower_feature on a cluster in memory: the level it asks for, and the level it restores."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from faults.lower_feature import ELIGIBLE_LEADERS, LowerFeature
from harness.errors import UsageError
from harness.kafka.protocol import features as protocol_features
from harness.kafka.protocol.features import Features
from harness.testing.check_fault import check_fault
from tests.fake_arena import IMPATIENT, FakeArena, FakeCluster, make_arena
from tests.faults.test_upgrade import VersionNode

Levels = dict[str, int]


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> Levels:
    """The finalized levels, as the brokers keep them."""
    kept = {ELIGIBLE_LEADERS: 1, "metadata.version": 30}

    def change(_at: object, wanted: Mapping[str, int], _limit_s: float) -> None:
        kept.update(wanted)

    monkeypatch.setattr(protocol_features, "features", lambda *_: Features({}, dict(kept), 1))
    monkeypatch.setattr(protocol_features, "lower_features", change)
    monkeypatch.setattr(protocol_features, "raise_features", change)
    return kept


@pytest.fixture
def arena() -> FakeArena:
    plain = make_arena().cluster
    nodes = [VersionNode(node.name, node.peers) for node in plain.brokers]
    return FakeArena(FakeCluster(list(nodes), plain.replicas), patience=IMPATIENT)


def test_passes_the_check_of_its_contract(arena: FakeArena, levels: Levels) -> None:
    checked = check_fault(LowerFeature(), arena, arena.cluster.brokers)
    assert (checked.bite.measured["level_before"], checked.bite.measured["level_after"]) == (1, 0)
    assert levels == {ELIGIBLE_LEADERS: 1, "metadata.version": 30}


def test_it_is_lower_only_while_it_is_held(arena: FakeArena, levels: Levels) -> None:
    with LowerFeature().hold(arena, arena.cluster.brokers) as bite:
        assert bite.bit, bite.proof
        assert levels[ELIGIBLE_LEADERS] == 0
        assert not LowerFeature().healed(arena, []).proof.endswith("1 again")
    assert levels[ELIGIBLE_LEADERS] == 1


def test_a_cluster_without_the_feature_is_not_touched(arena: FakeArena, levels: Levels) -> None:
    del levels[ELIGIBLE_LEADERS]
    with LowerFeature().hold(arena, arena.cluster.brokers) as bite:
        assert not bite.bit
        assert "is 0, which is not above 0" in bite.proof
    assert levels == {"metadata.version": 30}


def test_a_level_that_stays_does_not_bite_and_a_level_that_is_not_back_is_not_healed(
    arena: FakeArena, levels: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, nodes = LowerFeature(), arena.cluster.brokers
    with fault.hold(arena, nodes):
        healing = fault.healed(arena, nodes)
        assert not healing.healed
        assert f"{ELIGIBLE_LEADERS} is 0, not 1" in healing.proof
    monkeypatch.setattr(protocol_features, "lower_features", lambda *_: None)
    with fault.hold(arena, nodes) as bite:
        assert not bite.bit
        assert "is 1, not 0" in bite.proof


def test_a_level_below_zero_is_refused_and_without_a_target_nothing_is_done(
    arena: FakeArena, levels: Levels
) -> None:
    with pytest.raises(UsageError, match="to=-1"):
        LowerFeature(to=-1)
    with LowerFeature().hold(arena, []) as bite:
        assert not bite.bit
    assert levels[ELIGIBLE_LEADERS] == 1
