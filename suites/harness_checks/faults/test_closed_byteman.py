"""Byteman in a real broker: it listens on no port, and another user of the machine cannot give it orders. TRUST S2"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.slow_disk import SlowDisk
from harness.clusters.base.options import Options
from harness.clusters.links.mesh import Port
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalBroker
from harness.contracts import TopicSettings
from harness.targets import leader_of
from harness.testing.check_fault import check_fault
from harness.testing.listeners import listening_ports
from suites.support.arena import TOPIC, BareArena

pytestmark = pytest.mark.smoke
NOBODY = 65534
_TOPIC = TopicSettings(partitions=1, replication_factor=1, min_insync_replicas=1)

# Attempts of another user: write an order, replace its file, add a rule.
TRY = """
import sys
from pathlib import Path
folder, done = Path(sys.argv[1]), []
for name, act in {
    "write": lambda: (folder / "full").write_text("0 .*"),
    "replace": lambda: (folder / "full").unlink(),
    "add": lambda: (folder / "more").write_text("0 .*"),
    "link": lambda: (folder / "linked").symlink_to("/tmp"),
    "move": lambda: folder.rename(folder.with_name("moved")),
}.items():
    try:
        act()
        done.append(name)
    except PermissionError:
        pass
print(" ".join(["tried", *done]))
"""


@pytest.fixture(scope="module", params=[True, False], ids=["with-byteman", "plain"])
def arena(request: pytest.FixtureRequest) -> Iterator[BareArena]:
    """A cluster in a folder that every user can enter, as a runs folder may be."""
    folder = Path(tempfile.mkdtemp(prefix="onceproof-closed-"))
    folder.chmod(0o755)
    options = Options(byteman=request.param)
    try:
        with LocalCluster(folder / "cluster", brokers=1, combined=True, options=options) as cluster:
            cluster.create_topic(TOPIC, _TOPIC)
            yield BareArena(cluster)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def the_broker(arena: BareArena) -> LocalBroker:
    (broker,) = arena.nodes()
    assert isinstance(broker, LocalBroker)
    return broker


def test_a_broker_listens_on_the_ports_of_kafka_only(arena: BareArena) -> None:
    broker = the_broker(arena)
    assert broker.pid is not None
    kafka = {Port.CONTROL, Port.INTERNAL, Port.CONTROLLER, Port.PRODUCE, Port.CONSUME}
    found = listening_ports(broker.pid)
    assert found, "the check itself works"
    assert found <= set(kafka)
    command = Path(f"/proc/{broker.pid}/cmdline").read_text()
    assert ("javaagent" in command) is broker.options.byteman


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_give_orders_and_the_owner_can(arena: BareArena) -> None:
    broker = the_broker(arena)
    if not broker.options.byteman:
        assert not (broker.folder / "byteman").exists()
        return
    tried = subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-c", TRY,
         str(broker.folder / "byteman")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert tried.stdout.split() == ["tried"], tried.stdout + tried.stderr
    checked = check_fault(SlowDisk(delay_ms=100), arena, leader_of().pick(arena))
    assert checked.bite.way == "byteman"
    print(f"\n{checked.bite.proof}; healed: {checked.healing.proof}")
