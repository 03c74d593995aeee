"""The sources of the set-up, and its messages when they fail; nothing here is downloaded."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.provision import ensure_all, external_tool, java, kafka_libs, maven, toxiproxy
from harness.provision.byteman import BYTEMAN_VERSION, byteman, find_byteman
from harness.provision.java import find_java, java_version, unfit
from harness.provision.kafka import KAFKA_VERSION, find_kafka_libs, log_binding, version_of
from harness.provision.toxiproxy import TOXIPROXY_VERSION, find_go
from harness.runtime import cache

# The package has a function of the same name.
java_module = importlib.import_module("harness.provision.java")
OVERRIDES = ("JAVA_HOME", "KAFKA_LIBS", "TOXIPROXY", "BYTEMAN", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder and no override, whatever the caller has set."""
    for name in OVERRIDES:
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "cache"
    monkeypatch.setenv("ONCEPROOF_CACHE", str(place))
    return place


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return executable(home / "bin" / "java", "exit 1")


# Overrides and messages.


def test_kafka_libs_of_an_empty_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LIBS", str(tmp_path))
    for look in (kafka_libs, find_kafka_libs):
        with pytest.raises(SetupError, match=r"KAFKA_LIBS=\S+ has no kafka_2\.13-\*\.jar inside") as raised:
            look()
        assert "\n" not in str(raised.value)


def test_overrides_take_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka_2.13-3.9.2.jar").touch()
    proxy = executable(tmp_path / "proxy", "exit 0")
    (tmp_path / "agent.jar").touch()
    monkeypatch.setenv("KAFKA_LIBS", str(tmp_path))
    monkeypatch.setenv("TOXIPROXY", str(proxy))
    monkeypatch.setenv("BYTEMAN", str(tmp_path / "agent.jar"))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "21.0.2").parents[1]))
    there = ensure_all(cache.silent)
    assert (there.kafka_libs, there.kafka_version) == (tmp_path, "3.9.2")
    assert there.toxiproxy == proxy
    assert there.byteman == tmp_path / "agent.jar"
    assert (there.java, there.java_version) == (tmp_path / "jdk" / "bin" / "java", "21.0.2")


@pytest.mark.parametrize("name", ["TOXIPROXY", "BYTEMAN"])
def test_an_override_that_does_not_exist_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tmp_path / "missing"))
    with pytest.raises(SetupError, match=rf"^{name}=\S+missing is not"):
        toxiproxy() if name == "TOXIPROXY" else byteman()


def test_cached_files_are_used_without_any_tool(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libs = own_cache / "kafka" / KAFKA_VERSION
    libs.mkdir(parents=True)
    (libs / f"kafka_2.13-{KAFKA_VERSION}.jar").touch()
    (libs / "jars.txt").write_text(f"kafka_2.13-{KAFKA_VERSION}.jar\n")
    agent = own_cache / "byteman" / BYTEMAN_VERSION / f"byteman-{BYTEMAN_VERSION}.jar"
    agent.parent.mkdir(parents=True)
    agent.touch()
    proxy = executable(own_cache / "toxiproxy" / TOXIPROXY_VERSION / "toxiproxy-server", "exit 0")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(external_tool, "run", lambda *_, **__: pytest.fail("a tool was run"))
    assert kafka_libs() == find_kafka_libs() == libs
    assert version_of(libs) == KAFKA_VERSION
    assert byteman() == find_byteman() == agent
    assert toxiproxy() == proxy

    (libs / "jars.txt").write_text("gone.jar\n")
    assert find_kafka_libs() is None, "a jar that a cleaner removed has to be noticed"


def test_jars_that_cannot_be_fetched_raise_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "bin" / "mvn", "echo '[ERROR] registry does not answer'; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(maven, "ivy_jar", lambda: None)
    with pytest.raises(
        SetupError, match=r"Kafka .* could not be fetched: mvn: .*registry does not answer.*KAFKA_LIBS="
    ):
        kafka_libs(progress=cache.silent)


def test_ivy_is_tried_when_mvn_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "bin" / "mvn", "echo broken; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(maven, "ivy_jar", lambda: tmp_path / "ivy.jar")
    coordinates: list[str] = []
    monkeypatch.setattr(maven, "_by_ivy", lambda _ivy, what, *_: coordinates.append(str(what)))
    said: list[str] = []
    maven.fetch_jars("a jar", maven.Coordinates("g", "a", "1"), tmp_path, progress=said.append)
    assert coordinates == ["g:a:1"]
    assert any(line.startswith("fetching a jar by mvn … failed") for line in said)


@pytest.mark.parametrize(
    ("jar", "binding"),
    [
        ("log4j-core-2.25.4.jar", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"),
        ("slf4j-api-1.7.36.jar", "org.slf4j:slf4j-reload4j:1.7.36"),
        ("slf4j-api-1.7.30.jar", "org.slf4j:slf4j-reload4j:1.7.36"),
    ],
)
def test_the_log_binding_follows_the_jars(jar: str, binding: str, tmp_path: Path) -> None:
    (tmp_path / jar).touch()
    assert str(log_binding(tmp_path)) == binding


# Java and Go.


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("1.8.0_392", False),
        ("11.0.2", False),
        ("17.0.15", True),
        ("21", True),
        ("24.0.1", True),
        ("25.0.1", False),
        ("25.0.3", True),
        ("26", False),
        (None, False),
    ],
)
def test_only_supported_java_versions_are_used(version: str | None, fits: bool) -> None:
    assert (unfit(version) is None) is fits


def test_a_chosen_java_may_be_newer_but_not_a_broken_one() -> None:
    assert unfit("25.0.3", chosen=True) is None
    assert "Spark fails" in str(unfit("25.0.2", chosen=True))
    assert "Spark fails" in str(unfit("25", chosen=True))


def test_java_is_taken_from_the_path_or_from_the_usual_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    jvms = tmp_path / "jvm"
    later, fitting = fake_java(jvms / "java-21", "21.0.1"), fake_java(jvms / "java-17", "17.0.9")
    monkeypatch.setattr(java_module, "JVM_FOLDER", jvms)
    monkeypatch.setenv("PATH", str(old.parent))
    assert find_java() == fitting
    monkeypatch.setenv("PATH", str(later.parent))
    assert find_java() == later


def test_a_java_behind_a_script_is_asked_for_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "jdk", "17.0.1")
    executable(tmp_path / "shims" / "java", f"echo '    java.home = {tmp_path / 'jdk'}' >&2")
    monkeypatch.setattr(java_module, "JVM_FOLDER", tmp_path / "none")
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:/usr/bin:/bin")
    assert find_java() == real


def test_no_java_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "JVM_FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"install openjdk-17-jre-headless .* or set JAVA_HOME") as raised:
        java()
    assert "\n" not in str(raised.value)


def test_a_wrong_java_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="has no bin/java"):
        java()
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SetupError, match=r"is Java 11\.0\.2, older than 17"):
        java()


def test_a_java_without_a_release_file_is_run_for_its_version(tmp_path: Path) -> None:
    asked = executable(tmp_path / "bin" / "java", "echo 'openjdk version \"17.0.7\" 2023' >&2")
    assert java_version(asked) == "17.0.7"


@pytest.mark.parametrize(("said", "found"), [("go1.19.8", None), ("go1.23.4", "1.23.4"), ("go1.27", "1.27")])
def test_only_a_go_that_can_build_toxiproxy_is_used(
    said: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = executable(tmp_path / "go", f"echo 'go version {said} linux/amd64'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_go() == ((go, found) if found else None)
