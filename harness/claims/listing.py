"""The claims of this project, found by listing `suites/claims/`, and the choice that a user makes among them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from harness import registry
from harness.claims.claim import Claim
from harness.errors import UsageError

PACKAGE = "suites.claims"


def found() -> dict[str, Claim]:
    """Return the claims by their ids, in the order of files and, within a file, of its list."""
    modules = [import_module(f"{PACKAGE}.{name}") for name in registry.listed(PACKAGE)]
    return by_id(claim for module in modules for claim in module.claims)


def by_id(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Return the claims by id; raise UsageError if two have the same."""
    known: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in known:
            raise UsageError(f"claim {claim.id}: exists twice; give one of the two another id")
        known[claim.id] = claim
    return known


def chosen(claims: Mapping[str, Claim], ids: Sequence[str]) -> list[Claim]:
    """Return the claims with these ids, or all without any; an id may be a whole group, such as ORD."""
    if not ids:
        return list(claims.values())
    groups = {claim.group for claim in claims.values()}
    picked: dict[str, Claim] = {}
    for asked in ids:
        word = asked.upper()
        if word in claims:
            picked[word] = claims[word]
        elif word in groups:
            picked |= {claim.id: claim for claim in claims.values() if claim.group == word}
        else:
            near = difflib.get_close_matches(word, [*claims, *groups], 3) or sorted(groups)
            raise UsageError(f"{asked}: no claim and no group has this id; similar: {', '.join(near)}")
    return list(picked.values())
