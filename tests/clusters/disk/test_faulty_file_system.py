"""The file system under a broker's data folder, without Kafka: what it refuses, delays and loses."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clusters.disk.faulty_file_system import Disk, Order
from harness.clusters.disk.unsynced import Unsynced, UnsyncedLoss
from harness.contracts import DiskHarm

# --- loss of power ----------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "0.log", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def _content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def test_only_content_that_was_not_fsynced_is_lost(file: int) -> None:
    unsynced = Unsynced()
    unsynced.write(file, b"durable", 0)
    unsynced.fsync(file)
    unsynced.write(file, b"DUR", 0)
    unsynced.write(file, b" and more", 7)
    assert _content(file) == b"DURable and more", "readers see it at once"
    assert unsynced.at_risk() == 12
    assert unsynced.undo() == UnsyncedLoss(files=1, bytes=12)
    assert _content(file) == b"durable"
    assert unsynced.undo() == UnsyncedLoss(0, 0), "nothing is at risk any more"


def test_a_truncation_that_was_not_fsynced_is_undone(file: int) -> None:
    unsynced = Unsynced()
    unsynced.write(file, b"x" * 10_000, 0)
    unsynced.fsync(file)
    unsynced.truncate(file, 3)
    unsynced.write(file, b"yy", 3)
    unsynced.undo()
    assert _content(file) == b"x" * 10_000


def test_a_removed_file_has_nothing_to_lose(tmp_path: Path, file: int) -> None:
    unsynced = Unsynced()
    unsynced.write(file, b"gone", 0)
    (tmp_path / "0.log").unlink()
    assert unsynced.undo() == UnsyncedLoss(0, 0)


_WRITE = st.tuples(st.just("write"), st.integers(0, 20_000), st.integers(1, 9000))
_CUT = st.tuples(st.just("cut"), st.integers(0, 25_000), st.just(0))
_SYNC = st.tuples(st.just("sync"), st.just(0), st.just(0))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(_WRITE, _WRITE, _CUT, _SYNC), max_size=25))
def test_after_a_loss_every_file_is_as_at_its_last_fsync(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    fd = os.open(tmp_path_factory.mktemp("disk") / "0.log", os.O_RDWR | os.O_CREAT)
    unsynced, durable = Unsynced(), b""
    for number, (what, where, size) in enumerate(steps, 1):
        if what == "write":
            unsynced.write(fd, bytes([number]) * size, where)
        elif what == "cut":
            unsynced.truncate(fd, where)
        else:
            unsynced.fsync(fd)
            durable = _content(fd)
    unsynced.undo()
    assert _content(fd) == durable
    os.close(fd)


# --- the file system's operations ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "hit"),
    [
        ("/orders-0/0.log", True),
        ("/orders-extra-12/0.index", True),
        ("/onceproof-probe-2/0.log", True),
        ("/others-0/0.log", False),
        ("/__transaction_state-1/0.log", False),
        ("/meta.properties", False),
        ("/orders-0", False),
    ],
)
def test_only_partitions_under_test_are_hit(path: str, hit: bool) -> None:
    assert Order(DiskHarm.FULL, 0, ("orders", "onceproof-probe")).hits(path) is hit


def test_internal_topics_are_spared_even_without_a_prefix() -> None:
    assert not Order(DiskHarm.FULL, 0, ("",)).hits("/__consumer_offsets-0/0.log")
    assert Order(DiskHarm.FULL, 0, ("",)).hits("/anything-0/0.log")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Operations on a folder, without a mount."""
    for name in ("orders-0", "__own-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.log").write_bytes(b"old")
    monkeypatch.chdir(tmp_path)
    folder = os.open(tmp_path, os.O_RDONLY)
    yield Disk(folder)
    os.close(folder)


def _opened(disk: Disk, path: str, flags: int = os.O_RDWR) -> Any:
    fi = SimpleNamespace(flags=flags, fh=0)
    disk.open(path, fi)
    return fi


def _broken(disk: Disk, harm: DiskHarm, delay_ms: int = 0) -> None:
    disk.obey({"do": "be", "orders": [{"harm": harm.value, "delay_ms": delay_ms, "prefixes": ["orders"]}]})


@pytest.mark.parametrize(
    ("harm", "error", "refused", "allowed"),
    [
        (DiskHarm.FULL, errno.ENOSPC, "write grow create mkdir", "read shrink fsync unlink rename"),
        (DiskHarm.READ_ONLY, errno.EROFS, "write grow create mkdir shrink unlink rename", "read fsync"),
        (DiskHarm.BROKEN, errno.EIO, "write grow create mkdir shrink unlink rename read fsync", ""),
    ],
)
def test_each_harm_refuses_its_operations_and_no_others(
    disk: Disk, harm: DiskHarm, error: int, refused: str, allowed: str
) -> None:
    fi, own = _opened(disk, "/orders-0/0.log"), _opened(disk, "/__own-0/0.log")

    def act(what: str, folder: str, fi: Any) -> None:
        path = f"/{folder}/0.log"
        acts: dict[str, Callable[[], object]] = {
            "write": lambda: disk.write(path, b"new", 0, fi),
            "read": lambda: disk.read(path, 3, 0, fi),
            "fsync": lambda: disk.fsync(path, 0, fi),
            "grow": lambda: disk.truncate(path, 100),
            "shrink": lambda: disk.truncate(path, 1),
            "create": lambda: disk.create(f"/{folder}/1.log", 0o644, SimpleNamespace(flags=os.O_RDWR, fh=0)),
            "mkdir": lambda: disk.mkdir(f"/{folder}/below", 0o755),
            "rename": lambda: disk.rename(path, f"/{folder}/2.log"),
            "unlink": lambda: disk.unlink(f"/{folder}/2.log"),
        }
        acts[what]()

    _broken(disk, harm)
    for what in refused.split():
        with pytest.raises(OSError, match=re.escape(os.strerror(error))):
            act(what, "orders-0", fi)
    for what in ("write", "read", "fsync", "grow", "shrink", "create", "mkdir", "rename", "unlink"):
        act(what, "__own-0", own)
    for what in sorted(allowed.split(), key=["read", "fsync", "shrink", "rename", "unlink"].index):
        act(what, "orders-0", fi)
    disk.obey({"do": "be", "orders": []})
    assert disk.write("/orders-0/0.log", b"new", 0, fi) == 3


@pytest.mark.parametrize(
    ("harm", "slow"), [(DiskHarm.SLOW_APPEND, "write"), (DiskHarm.SLOW_FSYNC, "fsync")], ids=str
)
def test_each_delay_affects_only_its_own_operation(disk: Disk, harm: DiskHarm, slow: str) -> None:
    fi, own = _opened(disk, "/orders-0/0.log"), _opened(disk, "/__own-0/0.log")
    _broken(disk, harm, delay_ms=80)
    took = {}
    for name, path, file in (("", "/orders-0/0.log", fi), ("own ", "/__own-0/0.log", own)):
        for what, act in (
            ("write", lambda p, f: disk.write(p, b"x", 0, f)),
            ("fsync", lambda p, f: disk.fsync(p, 0, f)),
        ):
            begun = time.monotonic()
            act(path, file)
            took[name + what] = time.monotonic() - begun
    assert took.pop(slow) >= 0.08
    assert max(took.values()) < 0.08, took


def test_truncation_on_open_can_be_lost_too(disk: Disk, tmp_path: Path) -> None:
    fi = _opened(disk, "/orders-0/0.log", os.O_WRONLY | os.O_TRUNC)
    assert (tmp_path / "orders-0/0.log").read_bytes() == b""
    disk.write("/orders-0/0.log", b"newer", 0, fi)
    assert disk.obey({"do": "lose"}) == {"files": 1, "bytes": 5}
    assert (tmp_path / "orders-0/0.log").read_bytes() == b"old"


def test_a_file_renamed_over_another_keeps_its_unsynced_content(disk: Disk, tmp_path: Path) -> None:
    fi = SimpleNamespace(flags=os.O_WRONLY, fh=0)
    disk.create("/orders-0/0.tmp", 0o644, fi)
    disk.write("/orders-0/0.tmp", b"swapped", 0, fi)
    disk.rename("/orders-0/0.tmp", "/orders-0/0.log")
    assert (tmp_path / "orders-0/0.log").read_bytes() == b"swapped"
    disk.obey({"do": "lose"})
    assert (tmp_path / "orders-0/0.log").read_bytes() == b"", "the name is durable, the content is not"


def test_harms_add_up(disk: Disk) -> None:
    fi = _opened(disk, "/orders-0/0.log")
    slow, full = ({"harm": harm, "delay_ms": 80, "prefixes": ["orders"]} for harm in ("slow_fsync", "full"))
    disk.obey({"do": "be", "orders": [slow, full]})
    begun = time.monotonic()
    disk.fsync("/orders-0/0.log", 0, fi)
    assert time.monotonic() - begun >= 0.08
    with pytest.raises(OSError, match="No space left"):
        disk.write("/orders-0/0.log", b"x", 0, fi)
