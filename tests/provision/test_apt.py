"""Debian packages: installed if the package lists have them, otherwise one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.provision import apt


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs apt-get and apt-cache that record their calls; the lists have the package `newer` only."""
    record, programs = tmp_path / "calls", tmp_path / "bin"
    programs.mkdir()
    for name in ("apt-get", "apt-cache"):
        program = programs / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $*" >> {record}\n[ {name} = apt-get ] && exit 0\n'
            '[ "$2" = newer ] && echo "Package: newer" || exit 100\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    return record


def install(*packages: str) -> None:
    apt.install_first(packages, log="apt", there=lambda: None, by_hand="install it", progress=lambda _: None)


def test_the_first_package_that_the_lists_have_is_installed(calls: Path) -> None:
    install("older", "newer", "newest")
    assert [line for line in calls.read_text().splitlines() if " install " in line] == [
        "apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends newer"
    ]


def test_packages_that_no_list_has_are_an_error(calls: Path) -> None:
    with pytest.raises(SetupError, match=r"older could not be installed: .*; install it"):
        install("older", "oldest")
    assert " install " not in calls.read_text()
