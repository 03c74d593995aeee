"""Other versions of the client library: fetched by uv into their own folder, or refused in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import SetupError, UsageError
from harness.ledger.journal import Ledger
from harness.ledger.rundir import RunDir
from harness.provision import external_tool
from harness.provision.client import client_overlay, installed
from harness.runtime import cache
from harness.workers import client_version

VERSION = "2.1.0"
# A uv that records its arguments and, instead of the wheel, puts a file into the folder after --target.
UV = """echo "$@" > "$SAID"
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/confluent_kafka" && touch "$2/confluent_kafka/__init__.py"
"""


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that is run instead of uv, in an empty cache folder; its arguments go into `said`."""
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    program = tmp_path / "uv"
    program.write_text(f"#!/bin/sh\n{UV}")
    program.chmod(0o755)
    monkeypatch.setattr(external_tool, "pip_install", lambda: [program, "pip", "install"])
    return program


def test_a_version_is_fetched_once_as_a_wheel_without_dependencies(uv: Path, tmp_path: Path) -> None:
    place = client_overlay(VERSION, cache.silent)
    assert place is not None
    words = (tmp_path / "said").read_text().split()
    assert words[:-2] == ["pip", "install", "--no-deps", "--only-binary", ":all:", "--target"]
    assert words[-1] == f"confluent-kafka=={VERSION}"
    (tmp_path / "said").unlink()
    assert client_overlay(VERSION, cache.silent) == place
    assert not (tmp_path / "said").exists(), "it was there already"


def test_workers_find_it_before_the_installed_one(uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    place = client_overlay(VERSION, cache.silent)
    assert client_version.environment(VERSION) == {"PYTHONPATH": f"{place}{os.pathsep}mine"}
    assert client_version.environment("") == {}
    assert client_version.environment(installed()) == {}


def test_an_unknown_version_raises_in_one_line(uv: Path) -> None:
    uv.write_text("#!/bin/sh\necho 'there is no version of confluent-kafka==2.99.9'; exit 1\n")
    with pytest.raises(
        SetupError, match=r"^confluent-kafka 2\.99\.9 cannot be fetched: no such release"
    ) as raised:
        client_overlay("2.99.9", cache.silent)
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match=r"^confluent-kafka latest: a release is named by its numbers"):
        client_overlay("latest")


def test_loaded_versions_are_read_from_the_reports_of_workers(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "orders")
    for writer, version in (
        ("producer-1.0", "2.1.0"),
        ("producer-1.1", "2.1.0"),
        ("final-reader.0", "2.2.0"),
    ):
        with Ledger(run.ledger, writer) as ledger:
            ledger.events.write("library", versions={"confluent-kafka": version})
            ledger.events.write("other", versions={"confluent-kafka": "0"})
    assert client_version.loaded(run, {"producer-1"}) == {"confluent-kafka": "2.1.0"}
    assert client_version.loaded(run, {"producer-1", "final-reader"}) == {"confluent-kafka": "2.1.0, 2.2.0"}
    assert client_version.loaded(run, {"producer"}) == {}
