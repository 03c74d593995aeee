"""The public module: quick to import, complete, and every name is what it says."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import onceproof
from harness import registry, targets

SOURCE = Path(onceproof.__file__).read_text(encoding="utf-8")
HEAVY = ("pyspark", "confluent_kafka", "docker", "numpy", "typing", "harness", "faults")


def test_the_import_loads_nothing_heavy() -> None:
    code = "import json, sys; old = set(sys.modules); import onceproof; print(json.dumps(sorted(set(sys.modules) - old)))"
    loaded = json.loads(
        subprocess.check_output([sys.executable, "-c", code], cwd=Path(onceproof.__file__).parent)
    )
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("name", onceproof.__all__)
def test_every_name_resolves(name: str) -> None:
    assert getattr(onceproof, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    block = next(node for node in ast.parse(SOURCE).body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == onceproof._MODULE_OF
    assert set(onceproof.__all__) <= set(dir(onceproof))


def test_every_fault_and_every_target_is_there() -> None:
    faults = {registry.load("fault", name).__name__ for name in registry.names("fault")}
    roles = {
        name
        for name, function in inspect.getmembers(targets, inspect.isfunction)
        if function.__module__ == targets.__name__ and not name.startswith("_")
    }
    assert faults | roles <= set(onceproof.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "Kil"
    with pytest.raises(AttributeError, match="Kil'"):
        getattr(onceproof, name)


def test_a_package_of_the_user_with_our_name_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "faults").mkdir()
    other = tmp_path / "faults" / "__init__.py"
    other.write_text("", encoding="utf-8")
    code = "import faults, onceproof\ntry:\n  onceproof.Kill\nexcept ImportError as e:\n  print(e)"
    env = {"PYTHONPATH": f"{tmp_path}:{Path(onceproof.__file__).parent}"}
    said = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=env, text=True)
    assert str(other) in said
    assert "rename" in said


def test_a_folder_that_comes_first_on_the_path_does_no_harm(tmp_path: Path) -> None:
    for name in ("faults", "harness"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit(9)", encoding="utf-8")
    code = "from onceproof import Kill, Scenario; print(Kill.__module__)"
    env = {"PYTHONPATH": f"{tmp_path}:{Path(onceproof.__file__).parent}"}
    said = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=env, text=True)
    assert said == "faults.kill\n"
