"""skew_clock on nodes in memory, libfaketime's provision, and how a node's clock is set and read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from faults.skew_clock import SkewClock
from harness import registry
from harness.clusters.base.options import Options
from harness.clusters.links.mesh import Mesh, members
from harness.clusters.powers.clock import Clocked
from harness.clusters.processes.kafka_process import KafkaProcess
from harness.contracts import Node
from harness.errors import FaultError, SetupError, UsageError
from harness.kafka.protocol import raw_client
from harness.machine import fake_clock
from harness.machine.fake_clock import RIGHT, Skew, sweep_shared_memory
from harness.processes import child_process
from harness.provision import external_tool
from harness.provision.faketime import faketime, find_faketime
from harness.runtime import cache
from harness.testing.check_fault import check_fault
from harness.waiting import wait_until
from tests.fake_arena import IMPATIENT, FakeArena, FakeCluster, FakeNode, make_arena


@dataclass
class ClockNode(FakeNode):
    skew: Skew = RIGHT
    dumb: bool = False  # does not report its time

    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None:
        self.calls.append("skew_clock")
        if not self.stubborn:
            self.skew = Skew(offset_s, rate, time.time())

    def right_clock(self) -> None:
        self.calls.append("right_clock")
        self.skew = RIGHT

    def clock_offset_s(self) -> float:
        if self.dumb:
            raise raw_client.WireError("it does not lead the quorum, so it does not report its time")
        return float(self.skew.as_offset(time.time()))


def arena_with_clocks(patience: float = 0.5 / 8) -> tuple[FakeArena, list[ClockNode]]:
    plain = make_arena()
    nodes = [ClockNode(node.name) for node in plain.cluster.brokers]
    # A drift is watched for 0.5 s instead of 8 s.
    cluster = FakeCluster(list(nodes), plain.cluster.replicas)
    return FakeArena(cluster, plain.workers, patience=patience), nodes


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (SkewClock(), "skew_clock"),
        (SkewClock(-3600), "skew_clock-back"),
        (SkewClock(0, 1.5), "skew_clock-fast"),
        (SkewClock(-5, 0.5), "skew_clock-slow"),
    ],
    ids=str,
)
def test_passes_the_check_of_its_contract(fault: SkewClock, word: str) -> None:
    arena, nodes = arena_with_clocks()
    assert str(fault) == word
    checked = check_fault(fault, arena, [nodes[1]])
    assert checked.bite.measured["offset_s"] == pytest.approx(fault.offset_s, abs=0.3)
    if fault.rate != 1:
        assert checked.bite.measured["drift"] == pytest.approx(fault.rate - 1, rel=0.2)
    assert nodes[1].skew == RIGHT
    assert str(registry.load("fault", "skew_clock")()) == "skew_clock"


def test_no_bite_when_the_clock_stays_or_cannot_be_read() -> None:
    arena, nodes = arena_with_clocks()
    nodes[1].stubborn = True
    with SkewClock().hold(arena, [nodes[1]]) as bite:
        assert not bite.bit
        assert "wrong by only +0.00 s" in bite.proof
    nodes[0].dumb = True
    with SkewClock().hold(arena, [nodes[0]]) as bite:
        assert not bite.bit
        assert "does not report its time" in bite.proof
    assert nodes[0].calls == ["skew_clock", "right_clock"]
    with SkewClock().hold(arena, []) as bite:
        assert not bite.bit


def test_no_bite_when_it_does_not_drift() -> None:
    arena, nodes = arena_with_clocks()
    node = nodes[1]

    def jump_only(offset_s: float, rate: float = 1.0) -> None:
        node.skew = Skew(offset_s, 1.0, time.time())

    node.skew_clock = jump_only  # type: ignore[method-assign]
    with SkewClock(10, 1.3).hold(arena, [node]) as bite:
        assert not bite.bit
        assert "drift of broker-2 is +0.0" in bite.proof


def test_healing_is_not_claimed_while_the_clock_is_wrong() -> None:
    arena, nodes = arena_with_clocks(IMPATIENT)
    nodes[1].skew = Skew(5.0)
    healing = SkewClock().healed(arena, [nodes[1]])
    assert not healing.healed
    assert "still wrong: broker-2 +5.00 s" in healing.proof
    nodes[1].dumb = True
    assert not SkewClock().healed(arena, [nodes[1]]).healed


@pytest.mark.parametrize(
    ("offset_s", "rate", "named"), [(0.1, 1.0, "offset_s=0.1"), (0, 0, "rate=0"), (0, 1.001, "rate=1.001")]
)
def test_bad_settings_are_named(offset_s: float, rate: float, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        SkewClock(offset_s, rate)


def test_a_node_without_a_clock_of_its_own_is_refused() -> None:
    arena, _ = arena_with_clocks()
    nodes: list[Node] = [arena.workers[0]]
    with pytest.raises(FaultError, match="producer-1"), SkewClock().hold(arena, nodes):
        pass


# The node.


class ClockedProcess(Clocked, KafkaProcess):
    """A server that is never started."""


def clocked(folder: Path) -> Clocked:
    mesh = Mesh(99, members(1, 1, True))
    member = mesh.members[0]
    return ClockedProcess(
        member, mesh.address(member), cast(Any, None), folder, Options(clocks=True), cast(Any, None)
    )


def test_the_file_says_how_wrong_the_clock_is(tmp_path: Path) -> None:
    node = clocked(tmp_path)
    node.skew_clock(-90.5)
    assert (tmp_path / "clock").read_text() == "-90.500\n"
    assert node.residue() == ["the clock of broker-1 is set wrong"]
    node.right_clock()
    assert (tmp_path / "clock").read_text() == "+0.000\n"
    assert node.residue() == []


def test_a_drift_is_written_again_and_again_until_it_ends(tmp_path: Path) -> None:
    node = clocked(tmp_path)
    node.skew_clock(100.0, 3.0)
    wait_until(lambda: float((tmp_path / "clock").read_text()) > 101, 10.0, "it does not drift")
    node.right_clock()
    time.sleep(0.6)
    assert (tmp_path / "clock").read_text() == "+0.000\n"


@pytest.fixture
def asleep(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = child_process.spawn([sys.executable, "-c", "import time; time.sleep(60)"], log=tmp_path / "log")
    yield process
    child_process.end(process)


def test_shared_memory_of_the_dead_is_swept(
    tmp_path: Path, asleep: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    monkeypatch.setattr(fake_clock, "_SHARED_MEMORY", tmp_path)
    of_dead, of_living = fake_clock.shared_memory_of(ended.pid), fake_clock.shared_memory_of(asleep.pid)
    foreign = tmp_path / "faketime_shm_of_somebody"
    for file in (*of_dead, *of_living, foreign):
        file.touch()
    sweep_shared_memory()
    assert sorted(tmp_path.glob("*faketime*")) == sorted([*of_living, foreign])


# Provision.


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LIBFAKETIME", raising=False)
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_installed_library_or_the_chosen_one_is_taken(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_faketime(tmp_path) is None
    installed = tmp_path / "usr" / "lib" / "x86_64" / "faketime" / "libfaketimeMT.so.1"
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert find_faketime(tmp_path) == installed
    monkeypatch.setenv("LIBFAKETIME", str(tmp_path / "missing"))
    with pytest.raises(SetupError, match=r"^LIBFAKETIME=\S+missing is not a file"):
        faketime()


def test_a_cached_library_is_used_without_any_tool(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = own_cache / "libfaketime" / "debian" / "libfaketimeMT.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(external_tool, "run", lambda *_, **__: pytest.fail("a tool was run"))
    assert find_faketime(tmp_path) == library


@pytest.mark.usefixtures("own_cache")
def test_a_failed_fetch_says_how_to_provide_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.provision.faketime._PLACES", ())
    for name, script in (("apt-get", "echo 'E: no such package'; exit 100"), ("dpkg-deb", "exit 0")):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    with pytest.raises(SetupError, match=r"no such package.*install libfaketime") as raised:
        faketime(cache.silent)
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match="without apt-get and dpkg-deb"):
        faketime(cache.silent)
