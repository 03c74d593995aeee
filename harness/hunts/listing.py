"""The hunts of this project, found by listing `suites/hunts/`, and the choice that a user makes among them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module

from harness import registry
from harness.errors import UsageError
from harness.hunts.hunt import Hunt

PACKAGE = "suites.hunts"


def found() -> dict[str, Hunt]:
    """Return all hunts by their ids, which are the names of their files."""
    return {name: import_module(f"{PACKAGE}.{name}").hunt for name in registry.listed(PACKAGE)}


def chosen(hunts: Mapping[str, Hunt], names: Sequence[str]) -> dict[str, Hunt]:
    """Return the hunts with these names, or all without any."""
    for name in names:
        if name not in hunts:
            near = difflib.get_close_matches(name, hunts, 3) or sorted(hunts)
            raise UsageError(f"hunt {name}: there is no such hunt; similar: {', '.join(near)}")
    return {name: hunts[name] for name in dict.fromkeys(names)} if names else dict(hunts)
