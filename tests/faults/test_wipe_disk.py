"""wipe_disk with its settings: at once, with new directory ids, and down until the undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.wipe_disk import WipeDisk
from tests.fake_arena import FakeArena
from tests.faults.test_damage import FiledNode, filed_arena, logs


@pytest.fixture
def filed(tmp_path: Path) -> FakeArena:
    return filed_arena(tmp_path)


def test_a_quick_wipe_does_not_wait_until_the_broker_is_given_up(filed: FakeArena) -> None:
    arena = filed
    node = arena.cluster.brokers[1]
    assert isinstance(node, FiledNode)
    node.fetches = False
    arena.cluster.registered_brokers = lambda: ["broker-1", "broker-2", "broker-3"]  # type: ignore[method-assign]
    (top,) = {log.folder.parent for log in logs(arena, node.name)}
    (top / "meta.properties").write_text("version=1\ndirectory.id=abc\nnode.id=2\n")
    with WipeDisk(quick=True, new_disk=True).hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        assert bite.measured["registered_when_wiped"] == 1
        assert "broker-2 still registered then" in bite.proof
    properties = dict(line.split("=") for line in (top / "meta.properties").read_text().splitlines())
    new = properties.pop("directory.id")
    assert properties == {"version": "1", "node.id": "2"}
    assert new != "abc"
    assert len(new) == 22


def test_a_wiped_broker_can_stay_down_until_the_undo(filed: FakeArena) -> None:
    arena = filed
    node = arena.cluster.brokers[1]
    with WipeDisk(back=False).hold(arena, [node]) as bite:
        assert bite.bit, bite.proof
        assert not node.running()
    assert node.calls == ["kill", "restart"]
