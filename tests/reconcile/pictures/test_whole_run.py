"""A run on mock brokers has pictures, as soon as it is judged and when it is packed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaign import Campaign
from harness.clusters.memory import MemoryCluster
from harness.contracts import Verdict
from harness.ledger.packing import pack
from harness.ledger.pictures import read_pictures
from tests.short_run import HONEST


@pytest.mark.spark
def test_a_run_and_its_packed_folder_have_pictures(tmp_path: Path) -> None:
    with MemoryCluster(tmp_path / "cluster") as cluster, Campaign(cluster, tmp_path / "runs") as campaign:
        held = campaign.run(HONEST).result()
    assert held.verdict is Verdict.HELD, held.explain()
    assert pack(held.run, "least") == ""
    made = read_pictures(held.run)
    assert [lane["member"] for lane in made["members"]] == ["consumer-1"]
    assert 0 < len(made["messages"]["t_ms"]) <= held.count("attempted") == made["attempted"]
    assert made["lag"]["partitions"]
    assert (made["anomalies"], made["findings"]) == ({}, [])
