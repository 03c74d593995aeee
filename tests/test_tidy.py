"""The shape of the project: short files and functions, small folders, unique class names, true documents.

Exceptions are in tidy.toml. Its numbers may only become smaller and its lists only shorter.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from configparser import ConfigParser
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.pytest_plugin import settings

ROOT = Path(__file__).parents[1]
EXCEPTIONS: dict[str, Any] = tomllib.loads((ROOT / "tests" / "tidy.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILE_LINES, FUNCTION_LINES, FOLDER_MODULES = 250, 70, 18
SLACK = 10  # lines that an exception may exceed the real length before it has to be lowered
# One file per plug-in, or per test of one, so they grow.
MANY_PLUGINS = ("faults", "harness/commands", "harness/reconcile/anomalies", "suites/hazards", "tests/faults")
DOCUMENTS = [
    *("README.md", "CONTRIBUTING.md"),
    *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")),
]
PATH = re.compile(r"(?<![\w/.<*-])((?:harness|faults|suites|reports|tests|benchmarks|docs)/[\w./*-]*[\w*/])")
PYTHON_FILE = re.compile(r"`([\w/]+\.py)`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
RULE = re.compile(r"(?<![\w.-])E(\d{1,2})(?![\w.])")


@cache
def files() -> list[str]:
    """Return the paths of all files of the project."""
    tops = ("benchmarks", "docs", "faults", "harness", "reports", "suites", "tests")
    top_files = ("conftest.py", "onceproof.py", "onceproof_pytest.py")
    found = [
        *(ROOT / name for name in top_files),
        *(path for top in tops for path in (ROOT / top).rglob("*.*")),
    ]
    return sorted(p.relative_to(ROOT).as_posix() for p in found if "__pycache__" not in p.parts)


@cache
def sources() -> dict[str, str]:
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in files() if name.endswith(".py")}


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(sources()[name])


def document(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def compare(found: dict[str, int], allowed: dict[str, int], limit: int) -> list[str]:
    """Return what is longer than allowed, and exceptions that are unnecessary or too generous."""
    wrong = [
        f"{name}: {lines} lines, at most {allowed.get(name, limit)}"
        for name, lines in found.items()
        if lines > allowed.get(name, limit)
    ]
    for name, most in allowed.items():
        lines = found.get(name, 0)
        if lines <= limit:
            wrong.append(f"{name}: needs no exception any more, remove it from tidy.toml")
        elif most - lines >= SLACK:
            wrong.append(f"{name}: has {lines} lines, lower its exception from {most} in tidy.toml")
    return wrong


def test_files_are_short() -> None:
    found = {name: len(text.splitlines()) for name, text in sources().items()}
    assert not compare(found, EXCEPTIONS["file_lines"], FILE_LINES)


def test_functions_are_short() -> None:
    found: dict[str, int] = {}
    for name in sources():
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                key = f"{name}::{node.name}"
                found[key] = max(lines, found.get(key, 0))
    assert not compare(found, EXCEPTIONS["function_lines"], FUNCTION_LINES)


def test_folders_have_few_modules() -> None:
    count: dict[str, int] = defaultdict(int)
    for name in sources():
        folder, _, file = name.rpartition("/")
        count[folder] += file != "__init__.py"
    assert not {folder: n for folder, n in count.items() if n > FOLDER_MODULES and folder not in MANY_PLUGINS}


def imported(name: str) -> Iterator[str]:
    """Yield the names of modules, or of things in them, that a file imports."""
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: relative imports hide what is imported"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = f"{full.replace('.', '/')}.py" in sources()
                yield full if is_module else str(node.module)


def own_folder(name: str) -> set[str]:
    """Return the folders whose private modules a file may import: its own, and for a test the folder that it tests."""
    folder = name.rpartition("/")[0]
    found = {folder}
    if folder.startswith("tests/"):
        found |= {folder.removeprefix("tests/"), folder.replace("tests/", "harness/", 1)}
    if folder.startswith("suites/harness_checks/"):
        found.add(folder.removeprefix("suites/harness_checks/"))
    return found


def test_private_modules_are_imported_in_their_folder_only() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name in sources():
        for module in set(imported(name)):
            path = module.replace(".", "/")
            folder, _, short = path.rpartition("/")
            if short.startswith("_") and f"{path}.py" in sources() and folder not in own_folder(name):
                found[name].append(module)
    assert {name: sorted(modules) for name, modules in found.items()} == EXCEPTIONS["private_imports"]


def test_no_class_name_occurs_twice_in_harness() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name in sources():
        if name.startswith("harness/"):
            for node in ast.walk(tree_of(name)):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(name)
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_every_package_states_its_rule_in_one_sentence() -> None:
    wrong = []
    for name in sources():
        if name.endswith("/__init__.py") and not name.startswith(("tests/", "benchmarks/")):
            text = ast.get_docstring(tree_of(name)) or ""
            first = text.partition("\n\n")[0]
            if not first.endswith(".") or ". " in first:
                wrong.append(name)
    assert not wrong


def test_every_package_is_on_the_map() -> None:
    links = set(LINK.findall(document("docs/architecture.md")))
    packages = {name for name in sources() if name.endswith("/__init__.py") and name != "harness/__init__.py"}
    packages = {name for name in packages if not name.startswith(("tests/", "benchmarks/"))}
    assert not {f"../{name}" for name in packages} - links


def test_every_part_of_harness_has_a_layer() -> None:
    contracts = {c["id"]: c for c in PROJECT["tool"]["importlinter"]["contracts"]}
    listed = {word for line in contracts["house"]["layers"] for word in re.split(r"[ |:]+", line)}
    parts = {name.split("/")[1].removesuffix(".py") for name in sources() if name.startswith("harness/")}
    expected = {f"harness.{part}" for part in parts - {"__init__"}} | {"faults", "reports", "suites"}
    assert listed == expected


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_in_documents_exist(name: str) -> None:
    text = document(name)
    wrong = [path for path in PATH.findall(text) if not any(ROOT.glob(path))]
    wrong += [
        end for end in PYTHON_FILE.findall(text) if not any(f"/{f}".endswith(f"/{end}") for f in files())
    ]
    wrong += [link for link in LINK.findall(text) if not ((ROOT / name).parent / link).exists()]
    assert not wrong


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_in_documents_exist(name: str) -> None:
    text = document(name).replace("\\\n", " ")
    parsers = cli.build_parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    assert isinstance(parsers, dict)
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    wrong = []
    for command, rest in re.findall(r"\./onceproof +([a-z]+)\b([^`\n#|]*)", text):
        if command not in parsers:
            wrong.append(f"./onceproof {command}")
        elif command == "tox":
            wrong += [e for e in re.findall(r"-e (\w+)", rest) if f"testenv:{e}" not in tox]
        elif command != "pytest":
            known = parsers[command]._option_string_actions
            wrong += [f"{command} {o}" for o in re.findall(r"(?<=[ \[])--[a-z-]+", rest) if o not in known]
    options = {settings.flag(each) for each in settings.OPTIONS}
    wrong += [o for o in re.findall(r"--onceproof(?:-[a-z]+)+", text) if o not in options]
    for module in re.findall(r"python -m ([a-z_.]+[a-z_])", text):
        path = module.replace(".", "/")
        if module.split(".")[0] in ("harness", "suites", "benchmarks", "tests"):
            wrong += [module] if not {f"{path}.py", f"{path}/__main__.py"} & set(files()) else []
    markers = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["markers"]}
    markers |= {"onceproof", "claim"}  # of the plugin
    wrong += [m for m in re.findall(r"pytest [^`\n]*-m (\w+)", text) if m not in markers]
    assert not wrong


def test_every_rule_of_evidence_is_explained() -> None:
    explained = {
        int(number) for number in re.findall(r"^\| E(\d+) \|", document("docs/anomalies.md"), re.MULTILINE)
    }
    assert explained == set(range(1, len(explained) + 1))
    texts = {**sources(), **{name: document(name) for name in DOCUMENTS}}
    wrong = [
        f"{name}: E{number}"
        for name, text in texts.items()
        for number in RULE.findall(text)
        if int(number) not in explained
    ]
    assert not wrong


def test_tests_patch_no_limits() -> None:
    """A limit is a value that a test passes: `Arena.patience` for faults, a parameter elsewhere."""
    patched = re.compile(r"__(?:kw)?defaults__|setattr\([^)]*\"_?[A-Z][A-Z_]*\",\s*-?[0-9]")
    wrong = [
        name
        for name, text in sources().items()
        if name.startswith(("tests/", "suites/")) and name != "tests/test_tidy.py"
        if patched.search(text)
    ]
    assert wrong == []
