"""Checks for the fields of files that a stranger may have written.

A check is a function that returns the value it was given, or raises `Wrong`, whose text names the field, the value and
what was expected. Checks are put together from small ones: `shape({"session": integer(0, 9)})`. Fields that a shape
does not name are ignored, so that a newer writer may add some.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

LEAST_64, MOST_64 = -(1 << 63), (1 << 63) - 1
MOST_TEXT = 1_000_000  # characters
MOST_ITEMS = 10_000_000
MOST_SHOWN = 60  # characters of a wrong value
Check = Callable[[Any], Any]


class Wrong(ValueError):
    """A value that is not what its file promises."""

    def __init__(self, expected: str, value: Any, path: str = "") -> None:
        self.expected, self.value, self.path = expected, value, path
        super().__init__(expected, value, path)

    def __str__(self) -> str:
        return f"{self.path or 'the value'} is {shown(self.value)}: {self.expected} is expected"

    def below(self, name: str) -> Wrong:
        """Return the same error, seen from the object or list that contains the value as `name`."""
        path = f"{name}{self.path}" if self.path.startswith("[") or not self.path else f"{name}.{self.path}"
        return type(self)(self.expected, self.value, path)


class Missing(Wrong):
    def __str__(self) -> str:
        return f"{self.path} is missing: {self.expected} is expected"


def shown(value: Any) -> str:
    """Return a value for an error line: short, and without control characters."""
    # Only the top of a large value: repr of all of it may take long.
    text = (
        f"{type(value).__name__} of {len(value)}" if isinstance(value, dict | list) and value else repr(value)
    )
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


# --- single values --------------------------------------------------------------------------------


def integer(low: int = LEAST_64, high: int = MOST_64) -> Check:
    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Wrong(f"an integer from {low} to {high}", value)
        return value

    return check


def number(low: float = -1e300, high: float = 1e300) -> Check:
    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise Wrong(f"a number from {low:g} to {high:g}", value)
        return value

    return check


def text(most: int = MOST_TEXT, pattern: str = "", what: str = "") -> Check:
    compiled = re.compile(pattern) if pattern else None

    def check(value: Any) -> Any:
        if not isinstance(value, str) or len(value) > most or (compiled and not compiled.fullmatch(value)):
            raise Wrong(what or f"a text of at most {most} characters", value)
        return value

    return check


def boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise Wrong("true or false", value)
    return value


def one_of(values: Iterable[str]) -> Check:
    known = [str(value) for value in values]

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise Wrong(f"one of {', '.join(known)}", value)
        return value

    return check


def optional(check: Check) -> Check:
    """Return a check that also allows null."""
    return lambda value: None if value is None else check(value)


def either(first: Check, second: Check) -> Check:
    def check(value: Any) -> Any:
        try:
            return first(value)
        except Wrong:
            return second(value)

    return check


# --- lists and objects ----------------------------------------------------------------------------


def list_of(check: Check, most: int = MOST_ITEMS, least: int = 0) -> Check:
    def check_all(value: Any) -> Any:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise Wrong(f"a list of {least} to {most} values", value)
        for place, one in enumerate(value):
            try:
                check(one)
            except Wrong as wrong:
                raise wrong.below(f"[{place}]") from None
        return value

    return check_all


def mapping(check: Check, names: Check | None = None) -> Check:
    """Return a check for an object with any names whose values all pass."""

    def check_all(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("an object", value)
        for name, one in value.items():
            try:
                if names is not None:
                    names(name)
                check(one)
            except Wrong as wrong:
                raise wrong.below(f"[{shown(name)}]") from None
        return value

    return check_all


def anything(value: Any) -> Any:
    """Accept any value: it is only shown, and the JSON itself was checked."""
    return value


def shape(
    needed: Mapping[str, Check], more: Mapping[str, Check] | None = None, *, only: bool = False
) -> Check:
    """Return a check for an object with these fields, and maybe with `more`. `only`: any other field is an error."""
    allowed = more or {}

    def check_all(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("an object", value)
        for name, check in (*needed.items(), *allowed.items()):
            if name not in value:
                if name in needed:
                    raise Missing(_expected(check), None, name)
                continue
            try:
                check(value[name])
            except Wrong as wrong:
                raise wrong.below(name) from None
        if only:
            for name in value:
                if name not in needed and name not in allowed:
                    raise Wrong("no such field", value[name], shown(name))
        return value

    return check_all


def _expected(check: Check) -> str:
    try:
        check(_NOTHING)
    except Wrong as wrong:
        return wrong.expected
    return "a value"


_NOTHING = object()
