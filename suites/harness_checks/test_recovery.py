"""A run on a cluster that an earlier one left damaged: the nodes are brought back first, and the run proves something."""

from __future__ import annotations

import pytest

from harness.campaign import Execute
from harness.contracts import Cluster, Killable, Mode, Pausable, Verdict
from harness.ledger.events import read_events
from harness.scenario import Scenario


@pytest.mark.smoke
def test_nodes_that_were_left_ended_or_paused_run_again(cluster: Cluster, execute: Execute) -> None:
    ended, paused = [node for node in cluster.nodes() if node.name.startswith("broker")][:2]
    assert isinstance(ended, Killable)
    assert isinstance(paused, Pausable)
    paused.pause()
    ended.kill()
    result = execute(Scenario(name="after-a-failed-undo", mode=Mode.AT_LEAST_ONCE))
    assert result.verdict is Verdict.HELD, result.explain()
    assert not paused.paused()
    events = [event for _, event in read_events(result.run.ledger / "harness.events")]
    notes = [event["text"] for event in events if event["event"] == "note"]
    assert f"{ended.name} did not run after an earlier run" in notes
    assert f"{paused.name} was still paused after an earlier run" in notes
