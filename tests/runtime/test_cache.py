"""The cache folder and the tools that fill it: complete or absent, even if killed or started twice."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.runtime import cache

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    place = tmp_path / "cache"
    monkeypatch.setenv("ONCEPROOF_CACHE", str(place))
    return place


def executable(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def builder(code: str) -> subprocess.Popen[str]:
    """Start another process that runs `code` with the cache module imported."""
    return subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-c",
            f"import time\nfrom pathlib import Path\nfrom harness.runtime import cache\n{code}",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# The cache folder.


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("ONCEPROOF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_dir() == tmp_path / "xdg" / "onceproof"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_dir() == tmp_path / "home" / ".cache" / "onceproof"


# TRUST D3
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_cache_folder_that_others_can_write_is_refused(own_cache: Path, mode: int) -> None:
    own_cache.mkdir()
    own_cache.chmod(mode)
    for use in (
        cache.cache_dir,
        lambda: cache.own_folder("clusters"),
        lambda: cache.provide("thing", "1", lambda into: None),
        lambda: cache.place_of("thing", "1"),
        lambda: cache.log_file("thing"),
    ):
        with pytest.raises(SetupError) as raised:
            use()
        assert f"chmod -R go-w {own_cache}" in str(raised.value)
        assert "ONCEPROOF_CACHE" in str(raised.value)
        assert "\n" not in str(raised.value)
    own_cache.chmod(0o755)
    assert cache.cache_dir() == own_cache


# TRUST D3
def test_a_folder_in_the_cache_that_others_can_write_is_refused(own_cache: Path) -> None:
    for name in ("clusters", "thing", "thing/1"):
        (own_cache / name).mkdir(parents=True)
        (own_cache / name).chmod(0o777)
        with pytest.raises(SetupError, match="can be written by other users"):
            cache.place_of("thing", "1") if name.startswith("thing") else cache.own_folder(name)
        (own_cache / name).chmod(0o755)
    assert cache.place_of("thing", "1").is_dir()


# TRUST D3
def test_a_cache_folder_of_another_user_is_refused(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_cache.mkdir()
    owner = own_cache.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(SetupError, match=f"belongs to user {owner}, not to user {owner + 1}.*chown"):
        cache.cache_dir()


# TRUST D3
def test_a_cache_folder_that_others_can_replace_is_refused(own_cache: Path, tmp_path: Path) -> None:
    own_cache.mkdir()
    tmp_path.chmod(0o777)
    with pytest.raises(SetupError, match=f"chmod o-w {tmp_path}"):
        cache.cache_dir()
    tmp_path.chmod(0o1777)  # as /tmp: no user can rename the files of another
    assert cache.cache_dir() == own_cache


# TRUST D3
def test_a_new_cache_folder_is_for_its_user_only(own_cache: Path) -> None:
    before = os.umask(0)
    try:
        cache.own_folder("clusters")
        cache.provide("thing", "1", lambda into: (into / "a").touch())
    finally:
        os.umask(before)
    assert own_cache.stat().st_mode & 0o777 == 0o700
    assert not [path for path in own_cache.rglob("*") if path.is_dir() and path.stat().st_mode & 0o022]


# TRUST D3
@pytest.mark.parametrize("folders", ["cache", "cache/locks"])
def test_the_launcher_runs_no_uv_from_a_cache_folder_that_others_can_write(
    own_cache: Path, tmp_path: Path, folders: str
) -> None:
    clone, seed = tmp_path / "clone", own_cache
    clone.mkdir()
    for name in ("onceproof", "requirements.lock", "requirements-uv.lock"):
        (clone / name).write_bytes((ROOT / name).read_bytes())
    (clone / "onceproof").chmod(0o755)
    digest = hashlib.sha256((clone / "requirements-uv.lock").read_bytes()).hexdigest()[:16]
    uv = seed / f"uv-{digest}" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    (seed / "locks").mkdir()
    executable(uv, f"touch {tmp_path}/was-run; exit 1")
    (tmp_path / folders).chmod(0o777)
    path = tmp_path / "path"  # without a uv of the machine
    path.mkdir()
    for tool_ in ("bash", "dirname", "readlink", "sha256sum", "cut", "flock", "mkdir", "stat", "rm", "env"):
        (path / tool_).symlink_to(str(shutil.which(tool_)))
    executable(path / "python3", f'exec {sys.executable} "$@"')
    done = subprocess.run(
        [clone / "onceproof", "--version"],
        env={**os.environ, "PATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"the cache folder {tmp_path / folders} can be written by other users" in done.stderr
    assert f"chmod -R go-w {own_cache}" in done.stderr
    assert not (tmp_path / "was-run").exists()


def test_a_thing_is_built_once_and_then_reused(own_cache: Path) -> None:
    built = []

    def build(into: Path) -> None:
        built.append(into)
        (into / "thing").write_text("whole")

    first = cache.provide("thing", "1", build)
    assert cache.provide("thing", "1", build) == first == own_cache / "thing" / "1"
    assert len(built) == 1
    assert built[0] != first, "it has to be built elsewhere and renamed"
    assert (first / "thing").read_text() == "whole"


def test_a_failed_build_leaves_nothing_and_is_done_again(own_cache: Path) -> None:
    def fail(into: Path) -> None:
        (into / "half").touch()
        raise SetupError("no luck")

    with pytest.raises(SetupError, match="no luck"):
        cache.provide("thing", "1", fail)
    assert list((own_cache / "thing").iterdir()) == []
    assert cache.provide("thing", "1", lambda into: (into / "whole").touch()).is_dir()


def test_a_thing_that_is_no_longer_whole_is_built_again() -> None:
    def whole(folder: Path) -> bool:
        return (folder / "a").is_file()

    place = cache.provide("thing", "1", lambda into: (into / "a").touch(), whole=whole)
    (place / "a").unlink()
    (place / "stale").touch()
    cache.provide("thing", "1", lambda into: (into / "a").touch(), whole=whole)
    assert [file.name for file in place.iterdir()] == ["a"]


def test_an_incomplete_build_is_an_error(own_cache: Path) -> None:
    with pytest.raises(SetupError, match="not complete"):
        cache.provide("thing", "1", lambda into: None, whole=lambda folder: (folder / "a").is_file())
    assert not (own_cache / "thing" / "1").exists()


def test_two_processes_at_once_build_once(tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    code = (
        "def build(into):\n"
        f"    with Path({str(builds)!r}).open('a') as log: log.write('built\\n')\n"
        "    (into / 'a').touch(); time.sleep(0.4); (into / 'b').touch()\n"
        "place = cache.provide('thing', '1', build)\n"
        "print(sorted(file.name for file in place.iterdir()))"
    )
    outputs = [process.communicate(timeout=30) for process in [builder(code), builder(code)]]
    assert [out.strip() for out, _ in outputs] == ["['a', 'b']"] * 2, outputs
    assert builds.read_text() == "built\n"
    assert any("waiting for another start" in errors for _, errors in outputs)


def test_a_killed_build_is_done_again_and_its_leftovers_removed(own_cache: Path) -> None:
    killed = builder("cache.provide('thing', '1', lambda into: ((into / 'half').touch(), time.sleep(60)))")
    wait_for(lambda: list((own_cache / "thing").glob(".1.*.building/half")), "the build to be half done")
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=10)
    assert not (own_cache / "thing" / "1").exists()

    place = cache.provide("thing", "1", lambda into: (into / "whole").touch())
    assert [file.name for file in place.iterdir()] == ["whole"]
    assert list((own_cache / "thing").iterdir()) == [place]


def test_a_cache_that_cannot_be_created_is_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(SetupError, match="set ONCEPROOF_CACHE=FOLDER"):
        cache.provide("thing", "1", lambda into: None)


def test_progress_names_the_step_and_its_duration() -> None:
    said: list[str] = []
    with cache.timed("fetching it", said.append):
        pass
    assert said == ["fetching it …", "fetching it … 0.0 s"]


# Tools.


@pytest.mark.skipif(not Path("/usr/bin/setpriv").exists(), reason="no setpriv here")
def test_a_tool_ends_with_the_set_up(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    slow = executable(tmp_path / "slow", f"echo $$ >{pid_file}; exec sleep 60")
    setup = builder(
        f"from harness.provision import external_tool\nexternal_tool.run([{str(slow)!r}], log='slow')"
    )
    wait_for(lambda: pid_file.exists() and pid_file.read_text().strip(), "the tool to run")
    setup.kill()
    setup.communicate(timeout=10)
    pid = int(pid_file.read_text())
    wait_for(lambda: not is_running(pid), "the tool to end")


def wait_for(condition: Callable[[], object], describe: str, timeout_s: float = 10.0) -> None:
    limit = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < limit, f"waited {timeout_s} s for {describe}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
