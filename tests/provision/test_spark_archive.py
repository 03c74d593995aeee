"""Spark's class archive: when it is made, when it is not used, and that a failure costs nothing later."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import SetupError
from harness.provision import external_tool, spark_archive
from harness.provision.external_tool import ToolTimeout
from harness.runtime import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark of two jars, and a Java that is never started."""
    folder = tmp_path / "pyspark" / "jars"
    folder.mkdir(parents=True)
    for name in ("a.jar", "slf4j-api-2.jar"):
        (folder / name).write_text(name, encoding="utf-8")
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n', encoding="utf-8")
    monkeypatch.setattr(spark_archive, "_jars", lambda: folder)
    monkeypatch.setattr(spark_archive, "find_java", lambda: home / "bin" / "java")
    monkeypatch.setattr(spark_archive, "launcher_options", lambda java: ("--add-opens=x",))
    return folder


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that a training was asked to fill; the fake training makes an archive at once."""
    asked: list[Path] = []

    def train(command: list[str | Path], **_: object) -> None:
        asked.append(Path(command[-1]))
        (asked[-1] / spark_archive.CLASSES).write_bytes(b"classes")

    monkeypatch.setattr(external_tool, "run", train)
    return asked


def test_the_archive_is_made_once_and_found_again(trained: list[Path], jars: Path) -> None:
    assert spark_archive.find_spark_archive() is None
    made = spark_archive.spark_archive(cache.silent)
    assert made is not None
    assert made.classes.read_bytes() == b"classes"
    assert made.options == ("--add-opens=x",)
    assert made.classpath == os.pathsep.join([str(jars / "slf4j-api-2.jar"), str(jars / "a.jar")])
    assert spark_archive.spark_archive(cache.silent) == spark_archive.find_spark_archive() == made
    assert len(trained) == 1


def test_other_jars_need_another_archive_and_the_old_one_is_removed(trained: list[Path], jars: Path) -> None:
    first = spark_archive.spark_archive(cache.silent)
    assert first is not None
    os.utime(jars / "a.jar", ns=(1, 1))
    assert spark_archive.find_spark_archive() is None
    second = spark_archive.spark_archive(cache.silent)
    assert second is not None
    assert second.classes != first.classes
    assert not first.classes.exists()
    assert len(trained) == 2


def test_an_archive_of_another_installation_stays(
    trained: list[Path], own_cache: Path, tmp_path: Path
) -> None:
    others = own_cache / "spark-archive" / "pyspark-of-a-neighbour"
    others.mkdir(parents=True)
    (tmp_path / "neighbour").mkdir()
    (others / spark_archive.COMMAND).write_text(json.dumps({"jars": str(tmp_path / "neighbour")}))
    spark_archive.spark_archive(cache.silent)
    assert others.is_dir()
    (tmp_path / "neighbour").rmdir()
    spark_archive.spark_archive(cache.silent)
    assert not others.exists()


def test_a_failed_training_is_recorded_and_does_not_raise(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fail(command: list[str | Path], **_: object) -> None:
        asked.append(command)
        raise SetupError("no JVM today")

    monkeypatch.setattr(external_tool, "run", fail)
    assert spark_archive.spark_archive(cache.silent) is None
    assert spark_archive.spark_archive(cache.silent) is None
    assert len(asked) == 1
    assert "no JVM today" in (spark_archive.obstacle() or "")
    (failure,) = own_cache.glob(f"spark-archive/*/{spark_archive.FAILED}")
    assert failure.read_text(encoding="utf-8") == "no JVM today\n"


def test_a_time_out_is_not_recorded(
    own_cache: Path, trained: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow(*_: object, **__: object) -> None:
        raise ToolTimeout("java took longer than 300 s")

    for slow in ((external_tool, "run"), (spark_archive, "launcher_options")):
        with monkeypatch.context() as busy:
            busy.setattr(*slow, too_slow)
            said: list[str] = []
            assert spark_archive.spark_archive(said.append) is None
            assert "took longer" in said[-1]
        assert not list(own_cache.glob("spark-archive/*"))
        assert spark_archive.obstacle() is None
    assert spark_archive.spark_archive(cache.silent) is not None
    assert len(trained) == 1


def test_the_set_up_tries_again_after_a_failure(trained: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str | Path], **_: object) -> None:
        raise SetupError("no JVM today")

    with monkeypatch.context() as failing:
        failing.setattr(external_tool, "run", fail)
        assert spark_archive.spark_archive(cache.silent) is None
    assert spark_archive.spark_archive(cache.silent) is None
    assert trained == []
    assert spark_archive.spark_archive(cache.silent, again=True) is not None
    assert spark_archive.spark_archive(cache.silent, again=True) is not None
    assert len(trained) == 1
    assert spark_archive.obstacle() is None


def test_two_processes_make_it_once_and_a_partial_archive_is_never_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found_meanwhile: list[object] = []
    both = threading.Barrier(2, timeout=30)

    def train(command: list[str | Path], **_: object) -> None:
        (Path(command[-1]) / spark_archive.CLASSES).write_bytes(b"half")
        found_meanwhile.append(spark_archive.find_spark_archive())
        (Path(command[-1]) / spark_archive.CLASSES).write_bytes(b"whole")

    def make() -> None:
        both.wait()
        made.append(spark_archive.spark_archive(cache.silent))

    made: list[spark_archive.SparkArchive | None] = []
    monkeypatch.setattr(external_tool, "run", train)
    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found_meanwhile == [None]
    assert [one.classes.read_bytes() if one else b"" for one in made] == [b"whole", b"whole"]


def test_leftovers_of_a_killed_maker_are_removed_and_not_used(trained: list[Path]) -> None:
    first = spark_archive.spark_archive(cache.silent)
    assert first is not None
    place = first.classes.parent
    left = place.with_name(f".{place.name}.x.building")
    place.rename(left)
    assert spark_archive.find_spark_archive() is None
    assert spark_archive.spark_archive(cache.silent) == first
    assert not left.exists()


def test_a_new_cache_folder_has_no_obstacle(own_cache: Path) -> None:
    assert not own_cache.exists()
    assert spark_archive.obstacle() is None
    assert not own_cache.exists()


def test_obstacles_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=7 << 20))
        assert spark_archive.obstacle() == f"{tmp_path}: 7 MiB free, 400 are needed"
    with monkeypatch.context() as read_only:
        read_only.setattr(os, "access", lambda *_: False)
        assert spark_archive.obstacle() == f"{tmp_path} cannot be written"
    with monkeypatch.context() as bare:
        bare.setattr(spark_archive, "find_java", lambda: None)
        assert spark_archive.obstacle() == "there is no Java yet"
    monkeypatch.setattr(spark_archive, "place_of", _refused)
    assert spark_archive.obstacle() == "the cache folder belongs to user 7"


def _refused(name: str, version: str) -> Path:
    raise SetupError("the cache folder belongs to user 7")


def test_a_damaged_folder_counts_as_missing(trained: list[Path]) -> None:
    made = spark_archive.spark_archive(cache.silent)
    assert made is not None
    (made.classes.parent / spark_archive.COMMAND).write_text("{", encoding="utf-8")
    assert spark_archive.find_spark_archive() is None


def test_packages_are_compiled_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages" / "something"
    (package / "tests").mkdir(parents=True)
    for name in ("__init__.py", "part.py", "tests/__init__.py"):
        (package / name).write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(spark_archive, "_COMPILED", ("something", "not_installed"))
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    said: list[str] = []
    assert spark_archive.compile_packages(said.append)
    assert sorted(path.name.partition(".")[0] for path in package.glob("__pycache__/*.pyc")) == [
        "__init__",
        "part",
    ]
    assert not (package / "tests" / "__pycache__").exists()
    before = len(said)
    assert spark_archive.compile_packages(said.append)
    assert len(said) == before, "they were compiled again"
