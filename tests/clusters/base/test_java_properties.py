"""Properties files as Java reads them: Latin-1, with escapes for all other letters. TRUST R4."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clusters.base.broker_properties import render, server_properties
from harness.clusters.links.mesh import Member, Mesh


def read_as_java_does(text: str) -> dict[str, str]:
    """`java.util.Properties.load` for lines of key=value without blanks around the sign."""
    entries = {}
    for line in text.encode("latin-1").decode("latin-1").split("\n")[:-1]:
        key, _, value = line.partition("=")
        value = value.lstrip(" \t\f")
        units = re.sub(
            r"\\(u[0-9a-f]{4}|.)",
            lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else {"n": "\n", "r": "\r"}.get(m[1], m[1]),
            value,
        )
        entries[key] = units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    return entries


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x0c"), max_size=40))
def test_java_reads_back_the_same_value(value: str) -> None:
    text = render({"log.dirs": value, "z": "1"})
    assert text.isascii()
    assert read_as_java_does(text) == {"log.dirs": value, "z": "1"}


@pytest.mark.parametrize("name", ["größe", "a,b", "a b", "日本 🐘"])
def test_a_data_folder_of_any_name_is_one_entry_of_log_dirs(name: str, tmp_path: Path) -> None:
    from harness.runtime.plain_paths import seen_from

    folder = tmp_path / name / "broker-1"
    member = Member("broker-1", 1, broker=True, controller=True)
    mesh = Mesh(0, (member,))
    settings = server_properties(mesh, member, seen_from(folder, folder / "data"), {})
    assert settings["log.dirs"] == "data"
