"""A harness to be killed: starts a cluster in a folder and holds random faults until it dies.

Called by test_kills as `python -m suites.harness_checks._victim FOLDER SEED`. Its current step is in `FOLDER/doing`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from harness import registry
from harness.clusters.base.options import Options
from harness.clusters.local import LocalCluster
from harness.contracts import TopicSettings
from harness.targets import Target, active_controller, every_broker, follower_of, leader_of
from suites.support.arena import TOPIC, BareArena

# Faults that could leave something on the machine or the cluster.
CHOICES: list[tuple[str, Target]] = [
    ("kill", leader_of()),
    ("pause", follower_of()),
    ("pause", active_controller()),
    ("sever", leader_of()),
    ("slow_link", every_broker()),
    ("flaky_link", leader_of()),
    ("slow_disk", leader_of()),
    ("full_disk", follower_of()),
    ("skew_clock", leader_of()),
    ("starve", leader_of()),
    ("power_loss", follower_of()),
    ("hold_requests", leader_of()),
]


def main(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    doing = folder / "doing"
    doing.write_text("starting")
    options = Options(fuse=True, clocks=True, memory=True)
    with LocalCluster(folder / "cluster", controllers=1, options=options) as cluster:
        cluster.create_topic(TOPIC, TopicSettings())
        arena = BareArena(cluster)
        while True:
            name, target = chance.choice(CHOICES)
            doing.write_text(f"{name} on {target}")
            with registry.load("fault", name)().hold(arena, target.pick(arena)) as bite:
                doing.write_text(f"{name} on {target}: {bite.proof}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
