"""The claims of docs/claims.md, from its TOML, on a real cluster: each has the answer that the example expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaign import Campaign
from harness.claims import team_file
from harness.claims.bench import Bench
from harness.claims.claim import Claim, truth_of
from harness.contracts import Cluster
from suites.support import claims_example


@pytest.mark.parametrize("place", [0, 1])
def test_the_example_has_the_expected_answers(
    place: int, onceproof_cluster: Cluster, onceproof_campaign: Campaign, tmp_path: Path
) -> None:
    path = tmp_path / "team.toml"
    path.write_text(claims_example.text(), encoding="utf-8")
    claim: Claim = team_file.read(path)[place]
    bench = Bench(onceproof_cluster, onceproof_campaign, 1, claim.id)
    seen = claim.case(bench).completed()
    assert truth_of(seen.observations) is claim.expected, seen.observations
