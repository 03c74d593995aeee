"""What a crashed harness left is swept; what a living one uses is not touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from harness import owned, tether


def test_folders_of_the_living_are_left_alone(tmp_path: Path) -> None:
    folder = owned.new_cluster_folder(tmp_path)
    assert owned.sweep(tmp_path) == []
    assert (folder / owned.OWNER).exists()
    assert owned.new_cluster_folder(tmp_path) != folder


def test_what_a_dead_owner_left_is_ended_and_its_data_deleted(tmp_path: Path) -> None:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    identity = tether.identify(left.pid)
    assert identity is not None
    folder = tmp_path / owned.CLUSTERS / "99-0"
    (folder / "broker-1" / "data").mkdir(parents=True)
    (folder / "broker-1" / "server.log").write_text("why it crashed")
    (folder / "broker-1.pid").write_text(json.dumps(vars(identity)))
    dead = {**vars(identity), "start_ticks": identity.start_ticks + 1}
    (folder / owned.OWNER).write_text(json.dumps(dead))
    swept = owned.sweep(tmp_path)
    assert left.wait(10) != 0
    assert len(swept) == 1
    assert "ended 1 process" in swept[0]
    assert not (folder / "broker-1" / "data").exists()
    assert (folder / "broker-1" / "server.log").exists()
    assert owned.sweep(tmp_path) == []
