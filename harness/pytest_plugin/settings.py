"""Settings of a session: the option wins over the ini value, that over [tool.onceproof] of pyproject.toml.

For each name there is an option `--onceproof-NAME`, an ini value `onceproof_NAME` and a key `NAME` of the table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from harness.cluster_options import OPTIONS as CLUSTER_OPTIONS
from harness.ledger.packing import KEEP, KEEP_HELP

PREFIX = "onceproof_"
TABLE = "[tool.onceproof]"
SESSION_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "runs": {"metavar": "FOLDER", "help": "folder of the run folders (default: runs)"},
    "seed": {
        "metavar": "N",
        "type": int,
        "help": "seed of everything random in a run (default: that of the scenario)",
    },
    "keep": {"choices": KEEP, "help": KEEP_HELP},
    "claims": {
        "metavar": "FILE",
        "help": "file for the answers of tests marked `claim`: a page (.html) or data (.json)",
    },
}
REQUIRE: Mapping[str, Any] = {
    "action": "store_true",
    "help": "fail tests of onceproof that would be skipped",
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {**CLUSTER_OPTIONS, **SESSION_OPTIONS, "require": REQUIRE}
_DEFAULTS = {"runs": "runs", "keep": KEEP[0], "require": False}
_PATHS = ("runs", "claims", "client_config", "powers")  # relative to the file that names them


def flag(name: str, prefix: str = PREFIX) -> str:
    return "--" + (prefix + name).replace("_", "-")


def add_options(parser: pytest.Parser) -> None:
    """Add every option with the prefix, and its ini twin."""
    group = parser.getgroup("onceproof", "onceproof: delivery semantics on real Kafka clusters")
    for name, how in OPTIONS.items():
        group.addoption(flag(name), **_option(name, how))
        kind = "int" if how.get("type") is int else "bool" if "action" in how else "string"
        parser.addini(PREFIX + name, f"as {flag(name)}", type=kind, default=None)  # type: ignore[arg-type]


def add_short_options(parser: pytest.Parser) -> None:
    """Add the options without the prefix, for the suites of this project; both spellings set the same value."""
    group = parser.getgroup("onceproof")
    for name, how in {**CLUSTER_OPTIONS, **SESSION_OPTIONS}.items():
        group.addoption(flag(name, ""), **{**_option(name, how), "help": f"as {flag(name)}"})


def resolve(config: pytest.Config) -> None:
    """Write the value of every setting to its option; a cluster option that is not given stays None."""
    table = _table(config)
    for name in OPTIONS:
        dest = PREFIX + name
        if getattr(config.option, dest) is None:
            setattr(config.option, dest, _configured(config, name, table))


def value(config: pytest.Config, name: str) -> Any:
    """The value of a setting by its name without a prefix, after `resolve`."""
    return config.getoption(PREFIX + name)


def _option(name: str, how: Mapping[str, Any]) -> dict[str, Any]:
    return {**how, "default": None, "dest": PREFIX + name}


def _configured(config: pytest.Config, name: str, table: Mapping[str, Any]) -> Any:
    found, place = config.getini(PREFIX + name), f"ini value {PREFIX}{name}"
    if found is None:
        found, place = table.get(name), f"{TABLE} {name}"
    if found is None:
        return _DEFAULTS.get(name)
    allowed = OPTIONS[name].get("choices")
    if allowed and found not in allowed:
        raise pytest.UsageError(f"{place} = {found!r}: choose one of {', '.join(allowed)}")
    return str(config.rootpath / found) if name in _PATHS else found


def _table(config: pytest.Config) -> dict[str, Any]:
    """[tool.onceproof] of the pyproject.toml in pytest's root folder, checked."""
    path = config.rootpath / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{path}: {error}") from error
    table = project.get("tool", {}).get("onceproof", {})
    found = {key.replace("-", "_"): value for key, value in table.items()}
    for key, given in found.items():
        if key not in OPTIONS:
            raise pytest.UsageError(f"{path}: {TABLE} {key}: unknown setting; known: {', '.join(OPTIONS)}")
        how = OPTIONS[key]
        wanted = int if how.get("type") is int else bool if "action" in how else str
        if type(given) is not wanted:
            raise pytest.UsageError(f"{path}: {TABLE} {key} = {given!r}: has to be of type {wanted.__name__}")
    return found
